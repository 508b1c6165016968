/** Detects a TCP connection to itself: no process listened, and the kernel chose the dialled port for this end too. */
import { type Address, formatAddress } from "./connection.ts";

export interface SocketEnds {
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
}

/**
 * The error for a connection to itself; null for other connections. Linux allows this (RFC 9293, 3.5, simultaneous
 * open) for ports of its ephemeral range. A client that retries often meets it; it would read its own bytes and keep
 * the port from its owner.
 */
export function selfConnectionError(ends: SocketEnds, address: Address): Error | null {
  const { localAddress, localPort, remoteAddress, remotePort } = ends;
  if (address.kind !== "tcp" || localPort !== remotePort || localAddress !== remoteAddress) return null;
  const message = `connect ECONNREFUSED ${formatAddress(address)}: no process listens there`;
  return Object.assign(new Error(message), { code: "ECONNREFUSED" });
}

/**
 * Detects a TCP connection to itself: no process listened, and the kernel chose the dialed port for this end as well.
 */
import { type Address, formatAddress } from "./connection.ts";

export interface SocketEnds {
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
}

/**
 * Returns the error for a connection to itself, or null for any other connection. Linux allows such a connection (RFC
 * 9293, 3.5, simultaneous open) on ports of its ephemeral range. A client that retries often meets it; it would read
 * its own bytes and keep the port from its owner.
 */
export function selfConnectionError(ends: SocketEnds, address: Address): Error | null {
  const { localAddress, localPort, remoteAddress, remotePort } = ends;
  if (address.kind !== "tcp" || localPort !== remotePort || localAddress !== remoteAddress) return null;
  const message = `connect ECONNREFUSED ${formatAddress(address)}: no process listens there`;
  return Object.assign(new Error(message), { code: "ECONNREFUSED" });
}

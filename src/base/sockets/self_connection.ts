/**
 * Detects a TCP connection that is connected to itself. This happens if no process listens on the port to which a
 * client connects, and the kernel chooses the same port as the client's local port.
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
 * 9293, 3.5, simultaneous open) on its ephemeral ports, so clients that often retry can get one. The client would then
 * read its own bytes and occupy the server's port.
 */
export function selfConnectionError(ends: SocketEnds, address: Address): Error | null {
  const { localAddress, localPort, remoteAddress, remotePort } = ends;
  if (address.kind !== "tcp" || localPort !== remotePort || localAddress !== remoteAddress) return null;
  const message = `connect ECONNREFUSED ${formatAddress(address)}: no process listens there`;
  return Object.assign(new Error(message), { code: "ECONNREFUSED" });
}

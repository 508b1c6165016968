/** A connection that was made to itself: nobody listened, and the kernel chose the port that was dialled for this end, too. */
import { type Address, formatAddress } from "./connection.ts";

export interface SocketEnds {
  readonly localAddress?: string | undefined;
  readonly localPort?: number | undefined;
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
}

/**
 * What the dial is to reject with; null when there are two ends. Linux lets TCP do it (RFC 9293, 3.5, simultaneous open) for a
 * port of its ephemeral range; whoever dials again and again meets it, hears itself, and keeps the port from its owner.
 */
export function selfConnectionError(ends: SocketEnds, address: Address): Error | null {
  const { localAddress, localPort, remoteAddress, remotePort } = ends;
  if (address.kind !== "tcp" || localPort !== remotePort || localAddress !== remoteAddress) return null;
  const message = `connect ECONNREFUSED ${formatAddress(address)}: nobody listens, and the connection was to itself`;
  return Object.assign(new Error(message), { code: "ECONNREFUSED" });
}

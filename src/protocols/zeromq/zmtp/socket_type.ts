/** Checks which socket types may talk to each other, and the peer's properties. RFC 37, "The Socket-Type Property". */
import { type Metadata, propertyBytes, propertyNames, propertyText } from "./zmtp_metadata.ts";
import { ZmtpError } from "./zmtp_error.ts";

/**
 * Socket types of this side. Other types of the specification can be added here; nothing else in `wire` depends on
 * them.
 */
export const peerTypes = {
  REQ: ["REP", "ROUTER"],
  REP: ["REQ", "DEALER"],
  DEALER: ["REP", "DEALER", "ROUTER"],
  ROUTER: ["REQ", "DEALER", "ROUTER"],
} as const satisfies Record<string, readonly string[]>;

export type SocketType = keyof typeof peerTypes;

export const identityBytesMax = 255;

/**
 * Returns null if a peer with these properties may talk to `own`. A peer without a type may (RFC 37: it SHOULD send
 * one).
 */
export function checkPeer(own: SocketType, properties: Metadata): ZmtpError | null {
  const identity = propertyBytes(properties, propertyNames.identity);
  if (identity !== undefined && identity.byteLength > identityBytesMax) {
    const message = `The peer's identity has ${identity.byteLength} bytes; ${identityBytesMax} are allowed`;
    return new ZmtpError("PROPERTIES", message);
  }
  if (propertyBytes(properties, propertyNames.socketType) === undefined) return null;
  const type = propertyText(properties, propertyNames.socketType);
  const allowed: readonly string[] = peerTypes[own];
  if (allowed.includes(type)) return null;
  const what = type.replace(/[^\x21-\x7e]/g, "?").slice(0, 32);
  return new ZmtpError("PROPERTIES", `A ${own} socket talks to ${allowed.join(", ")}; the peer is "${what}"`);
}

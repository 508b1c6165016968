/**
 * Checks a peer's properties: its socket type must match, and its identity must be short enough. RFC 37, "The
 * Socket-Type Property".
 */
import { type ZmtpMetadata, zmtpPropertyBytes, zmtpPropertyNames, zmtpPropertyText } from "./zmtp_metadata.ts";
import { ZmtpError } from "./zmtp_error.ts";

/**
 * The socket types that this side can have, with the types that their peers may have.
 */
export const zmtpAllowedPeerTypes = {
  REQ: ["REP", "ROUTER"],
  REP: ["REQ", "DEALER"],
  DEALER: ["REP", "DEALER", "ROUTER"],
  ROUTER: ["REQ", "DEALER", "ROUTER"],
} as const satisfies Record<string, readonly string[]>;

export type ZeroMqSocketType = keyof typeof zmtpAllowedPeerTypes;

export const zmtpIdentityBytesMax = 255;

/**
 * Returns null if a peer with these properties may talk to a socket of type `own`; otherwise the error. Accepts a peer
 * without a type, because RFC 37 only recommends the type.
 */
export function checkZmtpPeerProperties(own: ZeroMqSocketType, properties: ZmtpMetadata): ZmtpError | null {
  const identity = zmtpPropertyBytes(properties, zmtpPropertyNames.identity);
  if (identity !== undefined && identity.byteLength > zmtpIdentityBytesMax) {
    const message = `The peer's identity has ${identity.byteLength} bytes; ${zmtpIdentityBytesMax} are allowed`;
    return new ZmtpError("PROPERTIES", message);
  }
  if (zmtpPropertyBytes(properties, zmtpPropertyNames.socketType) === undefined) return null;
  const type = zmtpPropertyText(properties, zmtpPropertyNames.socketType);
  const allowed: readonly string[] = zmtpAllowedPeerTypes[own];
  if (allowed.includes(type)) return null;
  const what = type.replace(/[^\x21-\x7e]/g, "?").slice(0, 32);
  return new ZmtpError("PROPERTIES", `A ${own} socket talks to ${allowed.join(", ")}; the peer is "${what}"`);
}

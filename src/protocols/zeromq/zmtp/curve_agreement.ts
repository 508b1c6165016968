/** Functions for both sides of CURVE's handshake: the keys of a connection, and errors. */
import { isCanonicalPublicKey, prepareX25519Secret, type X25519Secret } from "../../../base/support/x25519.ts";
import { deriveCurveBoxKey } from "./curve_box.ts";
import { ZmtpError } from "./zmtp_error.ts";

/** A function that returns cryptographically random bytes in a new array. */
export type RandomBytes = (count: number) => Uint8Array;

/** Makes a key pair that only one connection uses. */
export function newTransientCurveKey(randomBytes: RandomBytes): X25519Secret {
  const bytes = randomBytes(32);
  const secret = prepareX25519Secret(bytes);
  bytes.fill(0);
  return secret;
}

/**
 * Returns the key with which two sides encrypt their boxes. Throws ZmtpError if no secret key can belong to the public
 * key.
 */
export function requireCurveBoxKey(secret: X25519Secret, publicKey: Uint8Array): Uint8Array {
  const key = isCanonicalPublicKey(publicKey) ? deriveCurveBoxKey(secret, publicKey) : null;
  if (key !== null) return key;
  throw new ZmtpError("AUTHENTICATION", "The peer's public key cannot be one: no secret key belongs to it");
}

/** Makes the error for a box that cannot be opened; `likely` is the probable reason. */
export function unopenedCurveBoxError(command: string, likely: string): ZmtpError {
  return new ZmtpError("AUTHENTICATION", `The peer's ${command} cannot be opened: ${likely}`);
}

/** Makes the error for a command that is not allowed now; `state` says why. */
export function unexpectedCurveCommandError(command: string, state: string): ZmtpError {
  return new ZmtpError("COMMAND", `The peer sends the command ${command}, and ${state}`);
}

/** What CURVE's two sides do alike with their keys: one pair for each connection, and what two of them agree on. */
import { isCanonicalPublicKey, type X25519Secret, x25519Secret } from "../../support/x25519.ts";
import { boxKey } from "./curve_box.ts";
import { ZmtpError } from "./zmtp_error.ts";

/** Bytes from a generator that is fit for keys, in an array of the caller's own. */
export type RandomBytes = (count: number) => Uint8Array;

/** A key for one connection. */
export function transientSecret(randomBytes: RandomBytes): X25519Secret {
  const bytes = randomBytes(32);
  const secret = x25519Secret(bytes);
  bytes.fill(0);
  return secret;
}

/** The key of the boxes between the two. Throws ZmtpError for a public key that nobody can have the secret key of. */
export function agreedKey(secret: X25519Secret, publicKey: Uint8Array): Uint8Array {
  const key = isCanonicalPublicKey(publicKey) ? boxKey(secret, publicKey) : null;
  if (key !== null) return key;
  throw new ZmtpError("AUTHENTICATION", "The peer's public key cannot be one: no secret key belongs to it");
}

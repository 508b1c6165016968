/**
 * NaCl's boxes (encrypted and authenticated bytes) as CURVE uses them: XSalsa20-Poly1305 with a key that two sides
 * share, or that only one side knows. The callers, which do the handshake, choose contents and nonces. Source:
 * "Cryptography in NaCl", sections 5 to 9.
 */
import { hsalsa, xsalsa20poly1305 } from "@noble/ciphers/salsa.js";
import type { X25519Secret } from "../../../base/support/x25519.ts";

/** The number of bytes by which a box is longer than its content. A box includes Poly1305's tag. */
export const curveBoxOverheadBytes = 16;

/** The start of a nonce, which says what the box is for. The sender chooses the rest. */
export type CurveNoncePrefix =
  | "CurveZMQHELLO---"
  | "WELCOME-"
  | "COOKIE--"
  | "VOUCH---"
  | "CurveZMQINITIATE"
  | "CurveZMQREADY---"
  | "CurveZMQMESSAGEC"
  | "CurveZMQMESSAGES";

/** A nonce of 24 bytes: a prefix of 8 bytes and 16 random bytes, or a prefix of 16 bytes and a counter of 8 bytes. */
export interface CurveNonce {
  readonly prefix: CurveNoncePrefix;
  readonly rest: Uint8Array;
}

const nonceBytes = 24;
const encoder = new TextEncoder();
const sigma = new Uint32Array(encoder.encode("expand 32-byte k").buffer);

/**
 * Returns the key with which two sides encrypt their boxes (crypto_box_beforenm), 32 bytes. Returns null if `publicKey`
 * is of low order.
 */
export function deriveCurveBoxKey(secret: X25519Secret, publicKey: Uint8Array): Uint8Array | null {
  const shared = secret.deriveSharedSecret(publicKey);
  if (shared === null) return null;
  const key = subkey(shared, new Uint8Array(16));
  shared.fill(0);
  return key;
}

/** Encrypts `plain` into a box. The caller must never use a nonce twice with the same key. */
export function sealCurveBox(key: Uint8Array, nonce: CurveNonce, plain: Uint8Array): Uint8Array {
  return xsalsa20poly1305(key, nonceOf(nonce)).encrypt(plain);
}

/** Returns the content of a box. Returns null if the box was made with another key or nonce, or was modified. */
export function openCurveBox(key: Uint8Array, nonce: CurveNonce, box: Uint8Array): Uint8Array | null {
  if (box.byteLength < curveBoxOverheadBytes) return null;
  try {
    return xsalsa20poly1305(key, nonceOf(nonce)).decrypt(box);
  } catch {
    return null; // the lengths are right, so the tag is wrong
  }
}

/**
 * Returns the key that XSalsa20 derives from the first 16 bytes of a nonce. These bytes are the same for all messages
 * of one direction, so the key is derived only once. Salsa20 then uses the other 8 bytes.
 */
export function deriveCurveMessageKey(key: Uint8Array, prefix: "CurveZMQMESSAGEC" | "CurveZMQMESSAGES"): Uint8Array {
  return subkey(key, encoder.encode(prefix));
}

function subkey(key: Uint8Array, input: Uint8Array): Uint8Array {
  const words = new Uint32Array(8);
  hsalsa(sigma, wordsOf(key), wordsOf(input), words);
  return new Uint8Array(words.buffer);
}

/** Copies bytes into words. A view would not do, because the bytes may have any alignment. */
function wordsOf(bytes: Uint8Array): Uint32Array {
  return new Uint32Array(new Uint8Array(bytes).buffer);
}

function nonceOf({ prefix, rest }: CurveNonce): Uint8Array {
  const nonce = new Uint8Array(nonceBytes);
  encoder.encodeInto(prefix, nonce);
  if (prefix.length + rest.byteLength !== nonceBytes) {
    throw new RangeError(`${rest.byteLength} bytes behind ${prefix} make no nonce`);
  }
  nonce.set(rest, prefix.length);
  return nonce;
}

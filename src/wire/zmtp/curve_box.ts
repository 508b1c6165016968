/**
 * NaCl's boxes as CURVE uses them: XSalsa20-Poly1305 under a key that two sides agree on, or that one side alone knows. What
 * goes into them, and with which nonce, is the handshake's business. Cryptography in NaCl, sections 5 to 9.
 */
import { hsalsa, xsalsa20poly1305 } from "@noble/ciphers/salsa.js";
import type { X25519Secret } from "../../support/x25519.ts";

/** Bytes that a box is longer than what is in it: the tag of Poly1305. */
export const boxOverheadBytes = 16;

/** Text that begins a nonce and says what it is for; the rest is of the sender's choice. */
export type NoncePrefix =
  | "CurveZMQHELLO---"
  | "WELCOME-"
  | "COOKIE--"
  | "VOUCH---"
  | "CurveZMQINITIATE"
  | "CurveZMQREADY---"
  | "CurveZMQMESSAGEC"
  | "CurveZMQMESSAGES";

/** A nonce of 24 bytes: 16 chosen at random behind a short prefix, or a counter of 8 behind a long one. */
export interface Nonce {
  readonly prefix: NoncePrefix;
  readonly rest: Uint8Array;
}

const nonceBytes = 24;
const encoder = new TextEncoder();
const sigma = new Uint32Array(encoder.encode("expand 32-byte k").buffer);

/** The key of the boxes between two sides (crypto_box_beforenm); null when `publicKey` is of low order. 32 bytes. */
export function boxKey(secret: X25519Secret, publicKey: Uint8Array): Uint8Array | null {
  const shared = secret.agree(publicKey);
  if (shared === null) return null;
  const key = subkey(shared, new Uint8Array(16));
  shared.fill(0);
  return key;
}

/** The box with `plain` in it. A nonce must never be used twice with one key. */
export function sealBox(key: Uint8Array, nonce: Nonce, plain: Uint8Array): Uint8Array {
  return xsalsa20poly1305(key, nonceOf(nonce)).encrypt(plain);
}

/** What is in the box; null when it was not made with this key and nonce, or was changed since. */
export function openBox(key: Uint8Array, nonce: Nonce, box: Uint8Array): Uint8Array | null {
  if (box.byteLength < boxOverheadBytes) return null;
  try {
    return xsalsa20poly1305(key, nonceOf(nonce)).decrypt(box);
  } catch {
    return null; // its only failure, with arguments of the right lengths, is a wrong tag
  }
}

/**
 * The key that XSalsa20 derives from the first 16 bytes of a nonce. All messages of one direction have these in common, so it
 * is derived once, and Salsa20 goes on from there with the other 8.
 */
export function messageKey(key: Uint8Array, prefix: "CurveZMQMESSAGEC" | "CurveZMQMESSAGES"): Uint8Array {
  return subkey(key, encoder.encode(prefix));
}

function subkey(key: Uint8Array, input: Uint8Array): Uint8Array {
  const words = new Uint32Array(8);
  hsalsa(sigma, wordsOf(key), wordsOf(input), words);
  return new Uint8Array(words.buffer);
}

/** A copy: a view could begin anywhere. */
function wordsOf(bytes: Uint8Array): Uint32Array {
  return new Uint32Array(new Uint8Array(bytes).buffer);
}

function nonceOf({ prefix, rest }: Nonce): Uint8Array {
  const nonce = new Uint8Array(nonceBytes);
  encoder.encodeInto(prefix, nonce);
  if (prefix.length + rest.byteLength !== nonceBytes) {
    throw new RangeError(`${rest.byteLength} bytes behind ${prefix} make no nonce`);
  }
  nonce.set(rest, prefix.length);
  return nonce;
}

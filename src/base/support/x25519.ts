/**
 * Computes X25519, the Diffie-Hellman function of RFC 7748, with node:crypto. node:crypto is ten times as fast as
 * TypeScript, and takes the same time for every key.
 */
import { createPrivateKey, createPublicKey, diffieHellman, type KeyObject, timingSafeEqual } from "node:crypto";
import { Buffer } from "node:buffer";

/** The size of a secret key, a public key and a shared secret, in bytes. */
export const x25519KeyBytes = 32;

/** The bytes before the 32 bytes of a key, in the DER form that node:crypto reads (RFC 8410, sections 4 and 7). */
const secretPrefix = Buffer.from("302e020100300506032b656e04220420", "hex");
const publicPrefix = Buffer.from("302a300506032b656e032100", "hex");

const zeros = new Uint8Array(x25519KeyBytes);

export interface X25519Secret {
  readonly publicKey: Uint8Array;
  /** Returns the shared secret; null if the public key would give the same shared secret for every secret key. */
  deriveSharedSecret(publicKey: Uint8Array): Uint8Array | null;
}

/** Prepares a copy of a secret key of 32 bytes. Throws RangeError for another length. */
export function prepareX25519Secret(bytes: Uint8Array): X25519Secret {
  checkLength(bytes);
  const der = Buffer.concat([secretPrefix, bytes]);
  const own = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  der.fill(0);
  const publicKey = rawPublicKey(createPublicKey(own));
  return { publicKey, deriveSharedSecret: (theirs) => deriveSharedSecretOf(own, theirs) };
}

/**
 * Returns true if the bytes are the standard form of a public key. X25519 also accepts other forms of the same key:
 * with the highest bit set, or as a number of at least 2^255 - 19. In a list of keys, two forms of one key would count
 * as two clients.
 */
export function isCanonicalPublicKey(bytes: Uint8Array): boolean {
  const last = bytes[x25519KeyBytes - 1] ?? 0xff;
  if (last < 0x7f) return true;
  return last === 0x7f &&
    ((bytes[0] ?? 0xff) < 0xed || bytes.subarray(1, x25519KeyBytes - 1).some((byte) => byte < 0xff));
}

function deriveSharedSecretOf(own: KeyObject, theirs: Uint8Array): Uint8Array | null {
  checkLength(theirs);
  const key = Buffer.concat([publicPrefix, theirs]);
  try {
    const shared = diffieHellman({ privateKey: own, publicKey: createPublicKey({ key, format: "der", type: "spki" }) });
    return timingSafeEqual(shared, zeros) ? null : new Uint8Array(shared);
  } catch {
    return null; // OpenSSL and BoringSSL refuse public keys of low order.
  }
}

function rawPublicKey(key: KeyObject): Uint8Array {
  return new Uint8Array(key.export({ format: "der", type: "spki" }).subarray(publicPrefix.length));
}

function checkLength(bytes: Uint8Array): void {
  if (bytes.byteLength === x25519KeyBytes) return;
  throw new RangeError(`An X25519 key has ${x25519KeyBytes} bytes, not ${bytes.byteLength}`);
}

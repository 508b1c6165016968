import { describe, expect, test } from "bun:test";
import { isCanonicalPublicKey, prepareX25519Secret } from "../../../../src/base/support/x25519.ts";
import { hex } from "../../../support/wire.ts";

/** RFC 7748, section 6.1. */
const alice = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a";
const bob = "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb";

/**
 * Every public key with which the result does not depend on the secret, in each of its writings. RFC 7748, section 7.
 */
const lowOrder = [
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
  "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
];

test("RFC 7748's two parties agree", () => {
  const one = prepareX25519Secret(hex(alice));
  const other = prepareX25519Secret(hex(bob));
  expect(one.publicKey.toHex()).toBe("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
  expect(other.publicKey.toHex()).toBe("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f");
  const shared = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742";
  expect(one.deriveSharedSecret(other.publicKey)?.toHex()).toBe(shared);
  expect(other.deriveSharedSecret(one.publicKey)?.toHex()).toBe(shared);
});

test("RFC 7748's vectors for the function itself", () => {
  const vectors = [
    [
      "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
      "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
      "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
    ],
    [
      "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
      "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
      "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
    ],
  ] as const;
  for (const [secret, publicKey, shared] of vectors) {
    expect(prepareX25519Secret(hex(secret)).deriveSharedSecret(hex(publicKey))?.toHex()).toBe(shared);
  }
});

describe("a public key of low order", () => {
  test.each(lowOrder)("%s agrees to nothing", (publicKey) => {
    expect(prepareX25519Secret(hex(alice)).deriveSharedSecret(hex(publicKey))).toBeNull();
  });
});

test("a key of another length is a mistake of the caller", () => {
  expect(() => prepareX25519Secret(new Uint8Array(31))).toThrow("has 32 bytes, not 31");
  expect(() => prepareX25519Secret(hex(alice)).deriveSharedSecret(new Uint8Array(33))).toThrow("has 32 bytes, not 33");
});

test("the bytes of a secret may be overwritten once it was made", () => {
  const bytes = hex(alice);
  const secret = prepareX25519Secret(bytes);
  bytes.fill(0);
  const other = prepareX25519Secret(hex(bob));
  expect(secret.deriveSharedSecret(other.publicKey)).toEqual(other.deriveSharedSecret(secret.publicKey));
});

test("one key has one writing", () => {
  const canonical = (text: string) => isCanonicalPublicKey(hex(text));
  expect(canonical("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")).toBe(true);
  expect(canonical("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4eea")).toBe(false);
  expect(canonical("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f")).toBe(true);
  expect(canonical("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f")).toBe(false);
  expect(canonical("edfffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe7f")).toBe(true);
  expect(canonical("00000000000000000000000000000000000000000000000000000000000000ff")).toBe(false);
});

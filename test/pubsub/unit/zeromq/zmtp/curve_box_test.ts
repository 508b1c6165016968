import { expect, test } from "bun:test";
import { prepareX25519Secret } from "../../../../../src/base/support/x25519.ts";
import { deriveCurveBoxKey, openCurveBox, sealCurveBox } from "../../../../../src/protocols/zeromq/zmtp/curve_box.ts";
import { hex } from "../../../../support/wire.ts";

/** NaCl's own test (tests/box.c, "Cryptography in NaCl", sections 2 to 10). */
const alice = prepareX25519Secret(hex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"));
const bob = prepareX25519Secret(hex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"));
const nonce = hex("69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37");
const message = hex(`
  be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffce5ecbaaf33bd751a1ac728d45e6c61296cdc3c01233561f4
  1db66cce314adb310e3be8250c46f06dceea3a7fa1348057e2f6556ad6b1318a024a838f21af1fde048977eb48f59ffd4924ca1c60902e52
  f0a089bc76897040e082f937763848645e0705`);
const box = hex(`
  f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce48332ea7164d96a4476fb8c531a1186ac0dfc17c98dce87b
  4da7f011ec48c97271d2c20f9b928fe2270d6fb863d51738b48eeee314a7cc8ab932164548e526ae90224368517acfeabd6bb3732bc0e9da
  99832b61ca01b6de56244a9e88d5f9b37973f622a43d14a6599b1f654cb45a74e355a5`);

/** The nonce of a vector has no text in front; every prefix here has. */
const anyPrefix = (bytes: Uint8Array) => ({ prefix: "" as never, rest: bytes });

test("both sides come to NaCl's first key", () => {
  const first = "1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389";
  expect(deriveCurveBoxKey(alice, bob.publicKey)?.toHex()).toBe(first);
  expect(deriveCurveBoxKey(bob, alice.publicKey)?.toHex()).toBe(first);
});

test("a box is NaCl's, byte for byte, and opens again", () => {
  const key = deriveCurveBoxKey(alice, bob.publicKey) ?? new Uint8Array();
  expect(sealCurveBox(key, anyPrefix(nonce), message)).toEqual(box);
  expect(openCurveBox(key, anyPrefix(nonce), box)).toEqual(message);
});

test("a box that is too short, of another nonce, or changed in one bit anywhere, does not open", () => {
  const key = deriveCurveBoxKey(bob, alice.publicKey) ?? new Uint8Array();
  for (let length = 0; length < box.length; length++) {
    expect(openCurveBox(key, anyPrefix(nonce), box.subarray(0, length))).toBeNull();
  }
  for (let bit = 0; bit < box.length * 8; bit++) {
    const changed = box.slice();
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    expect(openCurveBox(key, anyPrefix(nonce), changed)).toBeNull();
  }
  const other = nonce.slice();
  other[23] = 0;
  expect(openCurveBox(key, anyPrefix(other), box)).toBeNull();
});

test("a nonce of another length is a mistake of the caller", () => {
  expect(() => sealCurveBox(new Uint8Array(32), { prefix: "WELCOME-", rest: new Uint8Array(8) }, message)).toThrow(
    RangeError,
  );
});

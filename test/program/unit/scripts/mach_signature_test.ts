/** Signatures of macOS binaries, on a file with the parts of a Mach-O file that matter to them. */
import { expect, test } from "bun:test";
import { checkMachSignature, signMach } from "../../../../scripts/packages/mach_signature.ts";

const contentBytes = 20_000;

/** __TEXT with the header and content, __LINKEDIT with nothing but the signature, and a place for it. */
function unsigned(): Buffer {
  const file = Buffer.alloc(contentBytes + 100, 7);
  file.fill(0, 0, 400);
  [0xfeed_facf, 0x0100_0007, 3, 2, 3, 160].forEach((value, at) => file.writeUInt32LE(value, at * 4));
  segment(file, 32, { name: "__TEXT", from: 0, bytes: contentBytes });
  segment(file, 104, { name: "__LINKEDIT", from: contentBytes, bytes: 100 });
  [0x1d, 16, contentBytes, 100].forEach((value, at) => file.writeUInt32LE(value, 176 + at * 4));
  return file;
}

function segment(file: Buffer, at: number, { name, from, bytes }: { name: string; from: number; bytes: number }): void {
  file.writeUInt32LE(0x19, at);
  file.writeUInt32LE(72, at + 4);
  file.write(name, at + 8);
  file.writeBigUInt64LE(BigInt(from), at + 40);
  file.writeBigUInt64LE(BigInt(bytes), at + 48);
}

test("a signed binary passes the check, and its header has the new size", () => {
  const signed = Buffer.from(signMach(unsigned(), "baton"));
  checkMachSignature(signed);
  const signatureBytes = signed.length - contentBytes;
  expect(signed.readUInt32LE(176 + 12)).toBe(signatureBytes);
  expect(signed.readBigUInt64LE(104 + 48)).toBe(BigInt(signatureBytes));
  expect(signMach(signed, "baton")).toEqual(signed);
});

test.each([[0, 500], [4, contentBytes - 1]])("a changed byte in page %d is found", (page, at) => {
  const signed = Buffer.from(signMach(unsigned(), "baton"));
  signed[at] = 8;
  expect(() => checkMachSignature(signed)).toThrow(`page ${page} of the program differs from its signature`);
});

test("a signature that does not cover all of the program is refused", () => {
  const signed = Buffer.from(signMach(unsigned(), "baton"));
  signed.writeUInt32BE(contentBytes - 5000, contentBytes + 20 + 32);
  expect(() => checkMachSignature(signed)).toThrow("covers 15000 bytes");
});

test("a binary without a signature is refused", () => {
  expect(() => checkMachSignature(unsigned())).toThrow("the program's signature cannot be read");
});

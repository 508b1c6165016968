/**
 * Ad-hoc signatures of macOS executables: a checksum of each page, which the kernel compares when it loads the page.
 * Bun signs what it compiles for arm64; what it compiles for x64 keeps the signature of the Bun executable, which does
 * not fit. Layout: loader.h and cs_blobs.h of the XNU kernel; numbers in the signature are big-endian.
 */
import { createHash } from "node:crypto";

const segmentCommand = 0x19;
const signatureCommand = 0x1d;
const superBlobMagic = 0xfade_0cc0;
const codeDirectoryMagic = 0xfade_0c02;
const sha256 = { type: 2, bytes: 32 };
const pageBits = 12;
const superBlobBytes = 20;
const directoryBytes = 88;
/** Flags of a signature without an identity that a build tool has made: CS_ADHOC, CS_LINKER_SIGNED. */
const adHocFlags = 0x2_0002;

interface MachCommands {
  /** The offsets of the commands in the header. */
  readonly text: number;
  readonly linkEdit: number;
  readonly signature: number;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function findCommands(bytes: Uint8Array): MachCommands {
  const view = viewOf(bytes);
  const found: { text?: number; linkEdit?: number; signature?: number } = {};
  for (let index = 0, at = 32; index < view.getUint32(16, true); index++, at += view.getUint32(at + 4, true)) {
    const command = view.getUint32(at, true);
    const name = Buffer.from(bytes.subarray(at + 8, at + 24)).toString("latin1");
    if (command === signatureCommand) found.signature = at;
    if (command === segmentCommand && name.startsWith("__TEXT\0")) found.text = at;
    if (command === segmentCommand && name.startsWith("__LINKEDIT\0")) found.linkEdit = at;
  }
  const { text, linkEdit, signature } = found;
  if (text === undefined || linkEdit === undefined || signature === undefined) {
    throw new Error("the Mach-O file has no place for a signature");
  }
  return { text, linkEdit, signature };
}

/** Returns the checksum of each page that the signature covers. */
function pageChecksums(covered: Uint8Array, bits: number): Uint8Array[] {
  const pages = Array.from(
    { length: Math.ceil(covered.length / 2 ** bits) },
    (_, page) => covered.subarray(page * 2 ** bits, (page + 1) * 2 ** bits),
  );
  return pages.map((page) => createHash("sha256").update(page).digest());
}

/** Returns a copy whose signature is replaced by an ad-hoc signature. */
export function signMach(bytes: Uint8Array, identifier: string): Uint8Array {
  const { text, linkEdit, signature } = findCommands(bytes);
  const start = viewOf(bytes).getUint32(signature + 8, true);
  const name = Buffer.from(`${identifier}\0`);
  const count = Math.ceil(start / 2 ** pageBits);
  const length = directoryBytes + name.length + count * sha256.bytes;
  const signed = Buffer.alloc(start + superBlobBytes + length);
  signed.set(bytes.subarray(0, start));
  // The header is covered, too: it has to be right before the checksums are made.
  const linkEditBytes = BigInt(signed.length) - signed.readBigUInt64LE(linkEdit + 40);
  signed.writeUInt32LE(superBlobBytes + length, signature + 12);
  signed.writeBigUInt64LE(linkEditBytes, linkEdit + 48);
  signed.writeBigUInt64LE((linkEditBytes + 0x3fffn) & ~0x3fffn, linkEdit + 32);
  const blob = signed.subarray(start);
  [superBlobMagic, superBlobBytes + length, 1, 0, superBlobBytes].forEach((value, at) =>
    blob.writeUInt32BE(value, at * 4)
  );
  const directory = blob.subarray(superBlobBytes);
  const hashes = directoryBytes + name.length;
  const head = [codeDirectoryMagic, length, 0x2_0400, adHocFlags, hashes, directoryBytes, 0, count, start];
  head.forEach((value, at) => directory.writeUInt32BE(value, at * 4));
  directory.set([sha256.bytes, sha256.type, 0, pageBits], 36);
  // The executable segment: its size in the file, and that it is the main program's.
  directory.writeBigUInt64BE(signed.readBigUInt64LE(text + 48), 72);
  directory.writeBigUInt64BE(1n, 80);
  directory.set(name, directoryBytes);
  directory.set(Buffer.concat(pageChecksums(signed.subarray(0, start), pageBits)), hashes);
  return signed;
}

/** Throws if a page differs from its checksum, or the signature does not cover everything before it. */
export function checkMachSignature(bytes: Uint8Array): void {
  const start = viewOf(bytes).getUint32(findCommands(bytes).signature + 8, true);
  const directory = findCodeDirectory(bytes.subarray(start));
  const field = (offset: number) => viewOf(directory).getUint32(offset);
  const hashes = field(16);
  const count = field(28);
  const covered = field(32);
  const [hashBytes = 0, hashType, , bits = 0] = directory.subarray(36);
  if (hashType !== sha256.type) throw new Error(`the signature's checksums are of type ${hashType}, not SHA-256`);
  if (covered !== start || count !== Math.ceil(covered / 2 ** bits)) {
    throw new Error(`the signature covers ${covered} bytes in ${count} pages; the program has ${start} bytes`);
  }
  pageChecksums(bytes.subarray(0, covered), bits).forEach((found, page) => {
    const expected = directory.subarray(hashes + page * hashBytes, hashes + (page + 1) * hashBytes);
    if (!Buffer.from(found).equals(expected)) throw new Error(`page ${page} of the program differs from its signature`);
  });
}

function findCodeDirectory(signature: Uint8Array): Uint8Array {
  const view = viewOf(signature);
  if (view.getUint32(0) !== superBlobMagic) throw new Error("the program's signature cannot be read");
  for (let index = 0; index < view.getUint32(8); index++) {
    const offset = view.getUint32(16 + index * 8);
    if (view.getUint32(offset) === codeDirectoryMagic) return signature.subarray(offset);
  }
  throw new Error("the program's signature has no code directory");
}

/**
 * Digests of texts and rows. Bun computes them itself; other runtimes need node:crypto and node:zlib, which take two
 * and three milliseconds to load.
 */
import process from "node:process";

interface Sha256 {
  update(part: string | Uint8Array): unknown;
  digest(encoding: "hex"): string;
}

/** Returns the SHA-256 of the parts, one after the other, as 64 hexadecimal digits. */
export function sha256Hex(...parts: readonly (string | Uint8Array)[]): string {
  const hash: Sha256 = "Bun" in globalThis
    ? new Bun.CryptoHasher("sha256")
    : process.getBuiltinModule("node:crypto").createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
}

/** Returns the CRC-32 of the bytes; `sum` is that of the bytes before them. */
export const crc32: (bytes: Uint8Array, sum?: number) => number = "Bun" in globalThis
  ? Bun.hash.crc32
  : process.getBuiltinModule("node:zlib").crc32;

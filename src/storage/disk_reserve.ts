/** Room on the disk before it is needed. Owns no format. */
import { closeSync, fsyncSync, openSync, statSync, writeSync } from "node:fs";

/** Makes a file that is there `bytes` long, with zeros at its end, and flushes it; a longer one, or none, stays as it is. Throws the system's error. */
export function reserveFile(path: string, bytes: number): void {
  const length = statSync(path, { throwIfNoEntry: false })?.size;
  if (length === undefined || length >= bytes) return;
  const file = openSync(path, "r+");
  try {
    const zeros = new Uint8Array(1 << 20);
    for (let at = length; at < bytes;) {
      at += writeSync(file, zeros, 0, Math.min(zeros.byteLength, bytes - at), at);
    }
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

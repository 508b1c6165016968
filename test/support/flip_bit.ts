/** A bit of a file that is another one afterwards, as a disk may have it. */
import { closeSync, openSync, readSync, writeSync } from "node:fs";

/** `bit`: from the beginning of the file, 0 is the lowest of its first byte. */
export function flipBit(path: string, bit: number): void {
  const file = openSync(path, "r+");
  try {
    const at = Math.floor(bit / 8);
    const byte = new Uint8Array(1);
    if (readSync(file, byte, 0, 1, at) !== 1) throw new Error(`${path} has no bit ${bit}`);
    byte[0] = (byte[0] as number) ^ (1 << (bit % 8));
    writeSync(file, byte, 0, 1, at);
  } finally {
    closeSync(file);
  }
}

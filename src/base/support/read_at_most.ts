/**
 * Reads a limited number of bytes from a descriptor that may have no end, such as a pipe, a device, or a file named by
 * mistake.
 */
import { readSync } from "node:fs";

const chunkBytes = 64 * 1024;

/**
 * Reads up to `bytesMax` bytes. If there are more, reads one more byte, which tells the caller that the input is too
 * long. Throws system errors.
 */
export function readBytesAtMost(fd: number, bytesMax: number): Uint8Array {
  const chunks: Uint8Array[] = [];
  for (let room = bytesMax + 1; room > 0;) {
    const chunk = new Uint8Array(Math.min(chunkBytes, room));
    const length = readSync(fd, chunk, 0, chunk.length, null);
    if (length === 0) break;
    chunks.push(chunk.subarray(0, length));
    room -= length;
  }
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
}

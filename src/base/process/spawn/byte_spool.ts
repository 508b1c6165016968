/** Keeps bytes until they are needed: the last ones in memory, and those before them in a file without a name. */
import { closeSync, readSync } from "node:fs";
import { tmpdir } from "node:os";
import { openRemovedFile, openUnnamedFileIn } from "./unnamed_file.ts";
import { writeAllBytes } from "../../support/write_whole.ts";

/** The maximum number of bytes in memory, and in a piece. */
export const spoolMemoryBytes = 64 * 1024;

export class ByteSpool implements Disposable {
  /** Null before the first byte. */
  #memory: Uint8Array | null = null;
  #memoryLength = 0;
  #fd: number | null = null;
  #fileLength = 0;

  /** Throws system errors of the file. */
  add(bytes: Uint8Array): void {
    if (this.#memoryLength + bytes.length > spoolMemoryBytes) {
      this.#addToFile(this.#inMemory());
      this.#memoryLength = 0;
    }
    if (bytes.length > spoolMemoryBytes) return this.#addToFile(bytes);
    this.#memory ??= new Uint8Array(spoolMemoryBytes);
    this.#memory.set(bytes, this.#memoryLength);
    this.#memoryLength += bytes.length;
  }

  /** Yields all bytes, in pieces of limited size. Throws system errors of the file. */
  *pieces(): Generator<Uint8Array, void, void> {
    for (let at = 0; this.#fd !== null && at < this.#fileLength;) {
      const piece = new Uint8Array(spoolMemoryBytes);
      const length = readSync(this.#fd, piece, 0, Math.min(piece.length, this.#fileLength - at), at);
      if (length === 0) throw new Error("the file is shorter than what was written to it");
      at += length;
      yield piece.subarray(0, length);
    }
    if (this.#memoryLength > 0) yield this.#inMemory();
  }

  [Symbol.dispose](): void {
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
    this.#memory = null;
    this.#memoryLength = 0;
  }

  #inMemory(): Uint8Array {
    return this.#memory?.subarray(0, this.#memoryLength) ?? new Uint8Array();
  }

  #addToFile(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#fd ??= openUnnamedFileIn(tmpdir()) ?? openRemovedFile(new Uint8Array());
    writeAllBytes(this.#fd, bytes);
    this.#fileLength += bytes.length;
  }
}

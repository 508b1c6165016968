/**
 * A small file beside a database with the number of a commit that was certainly stored (the mark). If the write-ahead
 * log was truncated or removed, SQLite silently reads an older state of the database. The mark then reveals the loss,
 * because it is higher than the commit number in the database. baton writes the mark after the commit was flushed, so a
 * crash never leaves the mark too high.
 */
import { closeSync, constants, fsyncSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { flushPath } from "./durable_file.ts";

const numberBytes = 8;
const markBytes = numberBytes + 4;

/**
 * Returns the number in the file. Returns 0 if there is no file, or if its checksum is wrong after an interrupted
 * write. Throws the system's error.
 */
export function readLastCommitNumber(path: string): bigint {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return 0n;
    throw thrown;
  }
  if (bytes.byteLength !== markBytes) return 0n;
  return bytes.readUInt32BE(numberBytes) === crc32(bytes.subarray(0, numberBytes)) ? bytes.readBigUInt64BE(0) : 0n;
}

export class LastCommitNumberFile {
  readonly #path: string;
  #file: number | null = null;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * Writes the number to the file. `flush` must be true for the first commit of a write-ahead log: a power failure can
   * then lose later numbers, but not the first one. Throws the system's error.
   */
  write(number: bigint, { flush }: { readonly flush: boolean }): void {
    if (flush) this.close(); // the file may have been removed, so it is opened again
    const isNew = this.#file === null;
    this.#file ??= openSync(this.#path, constants.O_RDWR | constants.O_CREAT, 0o600);
    const bytes = Buffer.alloc(markBytes);
    bytes.writeBigUInt64BE(number);
    bytes.writeUInt32BE(crc32(bytes.subarray(0, numberBytes)), numberBytes);
    writeSync(this.#file, bytes, 0, markBytes, 0);
    if (!flush && !isNew) return;
    fsyncSync(this.#file);
    flushPath(dirname(this.#path));
  }

  /** Removes the file. The caller does this after copying the log into the database. */
  remove(): void {
    this.close();
    rmSync(this.#path, { force: true });
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }
}

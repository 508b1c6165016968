/**
 * A number in a small file beside a database: the last commit that was stored at least. SQLite takes a write-ahead log that was
 * cut off or removed for one that never was, and reads the database as it was before; the mark is then above the number that the
 * database itself has. It is written after a commit was flushed, so that it is never above what a crash leaves.
 */
import { closeSync, constants, fsyncSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { flushPath } from "./durable_file.ts";

const numberBytes = 8;
const markBytes = numberBytes + 4;

/** 0 when there is none, and when its checksum does not match: a write that a crash has cut short. Throws the system's error. */
export function readMark(path: string): bigint {
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

export class CommittedMark {
  readonly #path: string;
  #file: number | null = null;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * `flush`: with the first commit of a write-ahead log. The later ones need it not: whoever loses power then loses the numbers
   * of these, and not that of the first. Throws the system's error.
   */
  write(number: bigint, { flush }: { readonly flush: boolean }): void {
    if (flush) this.close(); // it may have been removed
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

  /** When everything is in the database itself. */
  remove(): void {
    this.close();
    rmSync(this.#path, { force: true });
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }
}

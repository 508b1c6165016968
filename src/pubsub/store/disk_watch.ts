/**
 * Measures how full the store's disk is, against the store's own limit and the space of the file system. Measures after
 * commits and counts new bytes in between.
 */
import { diskFullShare, diskWarningShare } from "./topic_store_limits.ts";
import type { TopicRows } from "./topic_rows.ts";

/** Interval of measurements, in commits and in bytes, whichever comes first. */
const commitsPerMeasurement = 64;
const bytesPerMeasurement = 1 << 20;
/** New data is in the log first, and then in the database as well. */
const copies = 2;

/** The methods used here. */
type MeasuredDatabase = Pick<TopicRows, "usedBytes" | "fileSystem">;

export class DiskWatch {
  readonly #database: MeasuredDatabase;
  readonly #maxBytes: number | null;
  #commits = 0;
  #usedBytes = 0;
  #fileSystemShare = 0;
  #fileSystemBytes = 0;
  /** Bytes received since the last measurement. */
  #newBytes = 0;

  constructor(database: MeasuredDatabase, maxBytes: number | null) {
    this.#database = database;
    this.#maxBytes = maxBytes;
    this.measure();
  }

  /** Counts bytes that will be written. */
  expectBytes(bytes: number): void {
    this.#newBytes += bytes;
  }

  /** Called after a commit. */
  noteCommit(): void {
    this.#commits++;
    if (this.#maxBytes !== null || this.#commits >= commitsPerMeasurement || this.#newBytes >= bytesPerMeasurement) {
      this.measure();
    } // A few µs: space that other programs take is seen before the next message.
    else if (this.#newBytes > 0) this.#measureFileSystem();
  }

  measure(): void {
    this.#usedBytes = this.#database.usedBytes();
    this.#measureFileSystem();
    this.#commits = 0;
    this.#newBytes = 0;
  }

  #measureFileSystem(): void {
    const { bytes, freeBytes } = this.#database.fileSystem();
    this.#fileSystemBytes = bytes;
    this.#fileSystemShare = bytes === 0 ? 0 : 1 - freeBytes / bytes;
  }

  /** The used share of the nearer limit, from 0 to more than 1. */
  get usedShare(): number {
    return Math.max(this.#ownShare, this.#fileSystemShareSoon);
  }

  get #fileSystemShareSoon(): number {
    return this.#fileSystemShare + (this.#newBytes * copies) / (this.#fileSystemBytes || 1);
  }

  get #ownShare(): number {
    return this.#maxBytes === null ? 0 : (this.#usedBytes + this.#newBytes) / this.#maxBytes;
  }

  /** Returns a sentence above the warning limit, otherwise null. */
  warningSentence(): string | null {
    return this.usedShare >= diskWarningShare ? this.#describeShare(diskWarningShare) : null;
  }

  /** Returns a sentence if nothing more may be stored, otherwise null. */
  fullSentence(): string | null {
    // Measures again, so that freed space counts immediately.
    if (this.usedShare >= diskFullShare) this.#measureFileSystem();
    return this.usedShare >= diskFullShare ? this.#describeShare(diskFullShare) : null;
  }

  #describeShare(limit: number): string {
    const percent = (part: number) => `${Math.floor(part * 100)} %`;
    const isOwn = this.#maxBytes !== null && this.#ownShare >= this.#fileSystemShareSoon;
    const share = isOwn ? this.#usedBytes / (this.#maxBytes as number) : this.#fileSystemShare;
    const what = isOwn
      ? `the store uses ${this.#usedBytes} of ${this.#maxBytes} bytes`
      : `${percent(share)} of the file system is used`;
    const soon = share >= limit ? "" : ", more with the data being written";
    return `${what}${soon}; the limit is ${percent(limit)}`;
  }
}

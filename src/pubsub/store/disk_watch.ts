/**
 * How full the store's disk is: its own limit, and the file system's room, which others take as well. Looks after commits, and
 * counts what comes in between.
 */
import { diskFullShare, diskWarningShare } from "./topic_store_limits.ts";
import type { TopicDatabase } from "./topic_database.ts";

/** Between two looks at what the store takes, in commits and in bytes, whichever comes first. */
const commitsPerMeasurement = 64;
const bytesPerMeasurement = 1 << 20;
/** What is stored lies in the log before it lies in the database. */
const copies = 2;

/** What is asked of a database here. */
type MeasuredDatabase = Pick<TopicDatabase, "usedBytes" | "fileSystem">;

export class DiskWatch {
  readonly #database: MeasuredDatabase;
  readonly #maxBytes: number | null;
  #commits = 0;
  #usedBytes = 0;
  #fileSystemShare = 0;
  #fileSystemBytes = 0;
  /** Taken in since the last look. */
  #newBytes = 0;

  constructor(database: MeasuredDatabase, maxBytes: number | null) {
    this.#database = database;
    this.#maxBytes = maxBytes;
    this.measure();
  }

  /** So much is going to be written. */
  expectBytes(bytes: number): void {
    this.#newBytes += bytes;
  }

  /** Something was written. */
  committed(): void {
    this.#commits++;
    if (this.#maxBytes !== null || this.#commits >= commitsPerMeasurement || this.#newBytes >= bytesPerMeasurement) {
      this.measure();
    } // A few µs: what somebody else fills is seen before the next message is taken.
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

  /** The part of the nearer limit that is taken, from 0 to 1 and beyond. */
  get share(): number {
    return Math.max(this.#ownShare, this.#fileSystemShareSoon);
  }

  get #fileSystemShareSoon(): number {
    return this.#fileSystemShare + (this.#newBytes * copies) / (this.#fileSystemBytes || 1);
  }

  get #ownShare(): number {
    return this.#maxBytes === null ? 0 : (this.#usedBytes + this.#newBytes) / this.#maxBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** A sentence when the alarm is due; null otherwise. */
  warning(): string | null {
    return this.share >= diskWarningShare ? this.#sentence(diskWarningShare) : null;
  }

  /** A sentence when nothing more may be stored; null otherwise. */
  full(): string | null {
    // What somebody has freed is seen at once, too.
    if (this.share >= diskFullShare) this.#measureFileSystem();
    return this.share >= diskFullShare ? this.#sentence(diskFullShare) : null;
  }

  #sentence(limit: number): string {
    const percent = (part: number) => `${Math.floor(part * 100)} %`;
    const isOwn = this.#maxBytes !== null && this.#ownShare >= this.#fileSystemShareSoon;
    const share = isOwn ? this.#usedBytes / (this.#maxBytes as number) : this.#fileSystemShare;
    const what = isOwn
      ? `the store takes ${this.#usedBytes} of ${this.#maxBytes} bytes`
      : `${percent(share)} of the file system is taken`;
    const soon = share >= limit ? "" : ", and with what is being written too much";
    return `${what}${soon}; the limit is ${percent(limit)}`;
  }
}

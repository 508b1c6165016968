/**
 * Measures how full the disk of a topic store is, compared with the store's own limit and with the space of the file
 * system. Measures the disk before the first put of a batch, and counts the bytes of the batch before the store writes
 * them.
 */
import { type DiskSpace, freeDiskBytesAfterWrite } from "../../../base/storage/disk_space.ts";
import { diskFullShare, diskReserveShare, diskWarningShare } from "./topic_store_limits.ts";

/** The number of commits without puts between two measurements. */
const commitsPerMeasurement = 64;
/** The space that SQLite needs in addition to the data: a share of the data, and a number of bytes per measurement. */
const overheadShare = 0.02;
const overheadBytes = 64 << 10;

/** The rows of the store whose disk space is measured. */
interface MeasuredRows {
  space(): DiskSpace;
  /** Shrinks a long log to give space back to the file system. Returns true if the log had such space. */
  freeLog(): boolean;
}

export class StoreDiskWatch {
  readonly #rows: MeasuredRows;
  readonly #maxBytes: number | null;
  #commits = 0;
  #space!: DiskSpace;
  /** True if other programs may have taken space since the last measurement. */
  #isOld = false;
  /** Bytes of the current batch, and of the batches that were committed since the last measurement. */
  #batchBytes = 0;
  #committedBytes = 0;

  constructor(rows: MeasuredRows, maxBytes: number | null) {
    this.#rows = rows;
    this.#maxBytes = maxBytes;
    this.measure();
  }

  beginBatch(): void {
    this.#isOld = true;
  }

  expectBytes(bytes: number): void {
    this.#batchBytes += bytes;
  }

  noteCommit(): void {
    this.#committedBytes += this.#batchBytes;
    this.#batchBytes = 0;
    if (++this.#commits >= commitsPerMeasurement) this.measure();
  }

  measure(): void {
    this.#space = this.#rows.space();
    this.#commits = this.#committedBytes = 0;
    this.#isOld = false;
  }

  /** The used share of the limit that will be reached first. It is greater than 1 if the limit is exceeded. */
  get usedShare(): number {
    return Math.max(this.#ownShareWith(0), this.#fileSystemShareWith(0));
  }

  get isNearlyFull(): boolean {
    return this.usedShare >= diskWarningShare;
  }

  #fileSystemShareWith(bytes: number): number {
    const { bytes: all } = this.#space;
    const expected = this.#expectedWith(bytes);
    const pages = expected === 0 ? 0 : expected * (1 + overheadShare) + overheadBytes;
    return all === 0 ? 0 : 1 - freeDiskBytesAfterWrite(this.#space, pages) / all;
  }

  #ownShareWith(bytes: number): number {
    return this.#maxBytes === null ? 0 : (this.#space.usedBytes + this.#expectedWith(bytes)) / this.#maxBytes;
  }

  #expectedWith(bytes: number): number {
    return this.#committedBytes + this.#batchBytes + bytes;
  }

  /** Returns a warning for the operator if the disk is nearly full, otherwise null. */
  warningSentence(): string | null {
    return this.isNearlyFull ? this.#describeShare(0, diskWarningShare) : null;
  }

  /**
   * Returns the reason why no new client or topic may be stored; null if it may. The remaining space is reserved for
   * the positions of known clients.
   */
  reserveSentence(): string | null {
    return this.fullSentence(0, diskReserveShare);
  }

  /**
   * Returns the reason why the store cannot take `bytes` more bytes; null if it can. This limit does not apply to gets
   * and acknowledgements.
   */
  fullSentence(bytes = 0, limit = diskFullShare): string | null {
    if (this.#isOld) this.measure(); // takes some µs
    const isFull = () => Math.max(this.#ownShareWith(bytes), this.#fileSystemShareWith(bytes)) >= limit;
    if (!isFull()) return null;
    this.measure(); // freed space counts immediately
    if (isFull() && this.#rows.freeLog()) this.measure();
    return isFull() ? this.#describeShare(bytes, limit) : null;
  }

  #describeShare(bytes: number, limit: number): string {
    const percent = (part: number) => `${Math.floor(part * 100)} %`;
    const soonOwn = this.#ownShareWith(bytes);
    const soon = this.#fileSystemShareWith(bytes);
    const isOwn = this.#maxBytes !== null && soonOwn >= soon;
    const { bytes: all, freeBytes } = this.#space;
    const share = isOwn ? this.#space.usedBytes / (this.#maxBytes as number) : all === 0 ? 0 : 1 - freeBytes / all;
    const what = isOwn
      ? `the store uses ${this.#space.usedBytes} of ${this.#maxBytes} bytes`
      : `${percent(share)} of the file system is used`;
    const more = share >= limit
      ? ""
      : isOwn
      ? `, ${percent(soonOwn)} with the data being written`
      : `, ${percent(soon)} with the data being written to the log and to the database`;
    return `${what}${more}; the limit is ${percent(limit)}`;
  }
}

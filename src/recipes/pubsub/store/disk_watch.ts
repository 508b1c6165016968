/** How full the store's disk is: its own limit, and the file system's room. Looks after commits, so that a put costs nothing. */
import { diskAlarmShare, diskFullShare } from "./store_limits.ts";
import type { TopicDatabase } from "./topic_database.ts";

/** Between two looks at the file system, in commits. */
const commitsPerLook = 64;

export class DiskWatch {
  readonly #database: TopicDatabase;
  readonly #maxBytes: number | null;
  #commits = 0;
  #usedBytes = 0;
  #fileSystemShare = 0;

  constructor(database: TopicDatabase, maxBytes: number | null) {
    this.#database = database;
    this.#maxBytes = maxBytes;
    this.look();
  }

  /** Something was written. */
  committed(): void {
    if (this.#maxBytes !== null) this.#usedBytes = this.#database.usedBytes();
    if (++this.#commits % commitsPerLook === 0) this.look();
  }

  look(): void {
    this.#usedBytes = this.#database.usedBytes();
    this.#fileSystemShare = this.#database.fileSystemShare();
  }

  /** The part of the nearer limit that is taken, from 0 to 1 and beyond. */
  get share(): number {
    const own = this.#maxBytes === null ? 0 : this.#usedBytes / this.#maxBytes;
    return Math.max(own, this.#fileSystemShare);
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** A sentence when the alarm is due; null otherwise. */
  alarm(): string | null {
    return this.share >= diskAlarmShare ? this.#sentence(diskAlarmShare) : null;
  }

  /** A sentence when nothing more may be stored; null otherwise. */
  full(): string | null {
    return this.share >= diskFullShare ? this.#sentence(diskFullShare) : null;
  }

  #sentence(share: number): string {
    const percent = (part: number) => `${Math.floor(part * 100)} %`;
    const own = this.#maxBytes !== null && this.#usedBytes / this.#maxBytes >= this.#fileSystemShare;
    const what = own
      ? `the store takes ${this.#usedBytes} of ${this.#maxBytes} bytes`
      : `${percent(this.#fileSystemShare)} of the file system is taken`;
    return `${what}; the limit is ${percent(share)}`;
  }
}

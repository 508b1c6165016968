/**
 * Knows whether the data is still this keeper's. Somebody may remove or replace its files while it runs; another keeper
 * could then start in its place and give the same locks to others, so this one has to end, and answer nobody meanwhile.
 * Owns its timer; never opens a file, because closing it would end SQLite's locks on it (fcntl(2)).
 */
import { statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { BatonError } from "../../errors.ts";
import type { Clock } from "../../support/clock.ts";
import { databaseName, ownerName } from "./stored_records.ts";

/**
 * How old a look may be when a request comes in, in milliseconds. Another keeper gives every session its full timeout from
 * its own start on. A lease ends 500 ms or more before its session, counted from when its holder asked for what was
 * answered (src/zookeeper/session_timing.ts): whoever asks 500 ms after that start must not be answered.
 */
const freshMs = 100;
/** Between two looks while nobody asks. */
const checkMs = 1_000;
/** Whoever removes old files from /var/tmp goes by days. */
const touchMs = 3_600_000;

const requiredFiles = [databaseName, ownerName];
/** Where SQLite has them: its log, and what its users share of it. */
const logFiles = [`${databaseName}-wal`, `${databaseName}-shm`];

export interface DataGuardOptions {
  readonly clock: Clock;
  readonly dataDir: string;
  /** Rejects with LOCK_BUSY when the rows are another keeper's. */
  readonly confirm: () => Promise<void>;
  /** The data is not this keeper's any more. Called once, and nothing after it. */
  readonly lost: (error: BatonError) => void;
  /** It is; said at every look by the timer. */
  readonly present: () => void;
}

export class DataGuard {
  readonly #options: DataGuardOptions;
  readonly #inodes: ReadonlyMap<string, bigint | null>;
  #lost = false;
  #confirming = false;
  #checkedMs: number;
  #touchedMs = -Infinity;
  #cancel = () => {};

  /** To be made as soon as the files are open: those it finds are the ones it guards. */
  constructor(options: DataGuardOptions) {
    this.#options = options;
    this.#checkedMs = options.clock.now();
    const there = logFiles.filter((name) => inodeOf(options.dataDir, name) !== null); // some file systems allow no log
    this.#inodes = new Map([...requiredFiles, ...there].map((name) => [name, inodeOf(options.dataDir, name)]));
    if ([...this.#inodes.values()].includes(null)) this.#checkedMs = -Infinity;
  }

  /** Begins to look by itself. */
  watch(): void {
    this.#cancel = this.#options.clock.after(checkMs, () => {
      if (!this.holds()) return;
      this.watch();
      this.#touch();
      this.#confirm();
      this.#options.present();
    });
  }

  /** Whether the data was this keeper's `freshMs` ago. Cheap enough to be asked for every request. */
  holds(): boolean {
    const nowMs = this.#options.clock.now();
    if (this.#lost || nowMs - this.#checkedMs < freshMs) return !this.#lost;
    this.#checkedMs = nowMs;
    const { dataDir } = this.#options;
    for (const [name, inode] of this.#inodes) {
      if (inode !== null && inodeOf(dataDir, name) === inode) continue;
      this.#lose(
        new BatonError(
          "IO",
          `The keeper's ${name} in ${dataDir} was removed or replaced while it was in use: another keeper may have started there`,
        ),
      );
      return false;
    }
    return true;
  }

  stop(): void {
    this.#cancel();
  }

  #lose(error: BatonError): void {
    if (this.#lost) return;
    this.#lost = true;
    this.stop();
    this.#options.lost(error);
  }

  /** A busy disk may keep the answer back for long: it is not asked again meanwhile. */
  #confirm(): void {
    if (this.#confirming) return;
    this.#confirming = true;
    this.#options.confirm().catch((error) => {
      // A disk in trouble is the business of those who want something stored.
      if (error instanceof BatonError && error.code === "LOCK_BUSY") this.#lose(error);
    }).finally(() => this.#confirming = false);
  }

  #touch(): void {
    const { clock, dataDir } = this.#options;
    if (clock.now() - this.#touchedMs < touchMs) return;
    this.#touchedMs = clock.now();
    const date = new Date();
    for (const name of this.#inodes.keys()) {
      try {
        utimesSync(join(dataDir, name), date, date);
      } catch {
        // a disk that can only be read: nothing removes a file from it either
      }
    }
  }
}

/** The file's number; null when there is none that can be seen. */
function inodeOf(dataDir: string, name: string): bigint | null {
  try {
    return statSync(join(dataDir, name), { bigint: true }).ino;
  } catch {
    return null;
  }
}

/**
 * Checks that the data still belongs to this keeper. If the files are removed or replaced, another keeper can start
 * there and grant the same locks to other clients. This keeper must then end without answering another request. Owns
 * its timer. Never opens a file, because closing the file would release SQLite's locks on it (fcntl(2)).
 */
import { BatonError } from "../../../base/errors.ts";
import type { Clock } from "../../../base/support/clock.ts";
import { storeOwnerFileName } from "../../../base/storage/file_lock_holder.ts";
import type { KeeperDataFiles } from "./data_files.ts";
import { keeperDatabaseFileName } from "./keeper_rows.ts";

/**
 * The maximum age of a check when a request arrives, in milliseconds. Another keeper gives every session its full
 * timeout from its own start. A lease ends at least 500 ms before its session, counted from when a request was sent
 * (src/protocols/zookeeper/session_timing.ts). This keeper must therefore not answer a request that is sent 500 ms
 * after the start of another keeper.
 */
const freshMs = 100;
const checkMs = 1_000;
/**
 * How often the times of the files are updated, in milliseconds, because tools that clean /var/tmp delete old files.
 */
const touchMs = 3_600_000;

const requiredFiles = [keeperDatabaseFileName, storeOwnerFileName];
/** The files that SQLite keeps beside the database: its log, and the memory that processes share. */
const logFiles = [`${keeperDatabaseFileName}-wal`, `${keeperDatabaseFileName}-shm`];

export interface KeeperOwnershipMonitorOptions {
  readonly clock: Clock;
  readonly dataDir: string;
  readonly files: KeeperDataFiles;
  /** Asks the database for its owner. Rejects with LOCK_BUSY if that is another keeper. */
  readonly confirm: () => Promise<void>;
  /** Called once, when the data no longer belongs to this keeper. After that, no callback is called. */
  readonly onLost: (error: BatonError) => void;
  /** Called after each periodic check that finds the data in place. */
  readonly onPresent: () => void;
}

export class KeeperOwnershipMonitor {
  readonly #options: KeeperOwnershipMonitorOptions;
  readonly #inodes: ReadonlyMap<string, bigint | null>;
  #lost = false;
  #confirming = false;
  #checkedMs: number;
  #touchedMs = -Infinity;
  #cancel = () => {};

  /** Created as soon as the files are open, because the monitor watches the files that exist at this moment. */
  constructor(options: KeeperOwnershipMonitorOptions) {
    this.#options = options;
    this.#checkedMs = options.clock.now();
    const inodeOf = (name: string) => options.files.inodeOf(options.dataDir, name);
    const there = logFiles.filter((name) => inodeOf(name) !== null); // SQLite cannot use a log on some file systems
    this.#inodes = new Map([...requiredFiles, ...there].map((name) => [name, inodeOf(name)]));
    if ([...this.#inodes.values()].includes(null)) this.#checkedMs = -Infinity;
  }

  watch(): void {
    this.#cancel = this.#options.clock.startTimer(checkMs, () => {
      if (!this.ownsData()) return;
      this.watch();
      this.#touch();
      this.#confirm();
      this.#options.onPresent();
    });
  }

  /**
   * Returns true if the data belonged to this keeper at most `freshMs` ago. Fast enough to be called for every request.
   */
  ownsData(): boolean {
    const nowMs = this.#options.clock.now();
    if (this.#lost || nowMs - this.#checkedMs < freshMs) return !this.#lost;
    this.#checkedMs = nowMs;
    const { dataDir, files } = this.#options;
    for (const [name, inode] of this.#inodes) {
      if (inode !== null && files.inodeOf(dataDir, name) === inode) continue;
      const fault = "was removed or replaced while it was in use: another keeper may have started there";
      this.#lose(new BatonError("IO", `The keeper's ${name} in ${dataDir} ${fault}`));
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
    this.#options.onLost(error);
  }

  /** Asks the database for its owner. Sends one request at a time, because a busy disk can delay the response. */
  #confirm(): void {
    if (this.#confirming) return;
    this.#confirming = true;
    this.#options.confirm().catch((error) => {
      // Ignores failures of the disk, because commits report them.
      if (error instanceof BatonError && error.code === "LOCK_BUSY") this.#lose(error);
    }).finally(() => this.#confirming = false);
  }

  #touch(): void {
    const { clock, dataDir, files } = this.#options;
    if (clock.now() - this.#touchedMs < touchMs) return;
    this.#touchedMs = clock.now();
    for (const name of this.#inodes.keys()) {
      try {
        files.touch(dataDir, name);
      } catch {
        // No files are removed on a read-only disk either.
      }
    }
  }
}

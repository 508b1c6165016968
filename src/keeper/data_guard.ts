/**
 * Notices when somebody removes or replaces the data under a running keeper. Another keeper could then start in its place
 * and give the same locks to others: this one has to end at once, and its clients' sessions with it. Owns its timer.
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../support/clock.ts";
import { databaseName } from "./stored_records.ts";

/** Between two looks. */
const checkMs = 1_000;

export interface DataGuardOptions {
  readonly clock: Clock;
  readonly dataDir: string;
  /** The data is not this keeper's any more. Called once, and nothing after it. */
  readonly lost: () => void;
  /** It is. */
  readonly present: () => void;
}

export class DataGuard {
  readonly #options: DataGuardOptions;
  readonly #inode: number | null;
  #cancel = () => {};

  constructor(options: DataGuardOptions) {
    this.#options = options;
    this.#inode = inodeOf(options.dataDir);
    this.#later();
  }

  stop(): void {
    this.#cancel();
  }

  #later(): void {
    const { clock, dataDir, lost, present } = this.#options;
    this.#cancel = clock.after(checkMs, () => {
      if (inodeOf(dataDir) !== this.#inode) return lost();
      this.#later();
      present();
    });
  }
}

/** The number of the database's file; null when there is none that can be seen. */
function inodeOf(dataDir: string): number | null {
  try {
    return statSync(join(dataDir, databaseName)).ino;
  } catch {
    return null;
  }
}

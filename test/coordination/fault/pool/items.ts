/** The items of a round, each with FIFOs for its runs to be observed by; see test/fixtures/pool_section.sh. */
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { killHolders } from "../lock/kill_holders.ts";
import type { Section } from "../lock/observer.ts";
import type { ObserverProcess } from "../lock/observer_process.ts";

export class Items {
  readonly names: readonly string[];
  /** A file with the names. */
  readonly list: string;
  readonly folder: string;
  readonly #group: string;
  readonly #runs: readonly number[];
  readonly #observer: ObserverProcess;

  /** `runsMax`: runs of one item; more is a failure of its own. */
  constructor(count: number, { folder, group, observer, runsMax = 8 }: {
    readonly folder: string;
    readonly group: string;
    readonly observer: ObserverProcess;
    readonly runsMax?: number;
  }) {
    const runs = this.#runs = Array.from({ length: runsMax }, (_, index) => index + 1);
    this.names = Array.from({ length: count }, (_, index) => `item${index + 1}`);
    this.folder = join(folder, "items");
    this.list = join(folder, "list");
    this.#group = group;
    this.#observer = observer;
    writeFileSync(this.list, this.names.join("\n"));
    for (const name of this.names) {
      mkdirSync(join(this.folder, name), { recursive: true });
      const made = spawnSync("mkfifo", runs.map((run) => this.#fifo(name, run)));
      if (made.status !== 0) throw new Error(`Cannot make FIFOs in ${this.folder}: ${made.stderr}`);
      for (const run of runs) observer.watch(this.#groupOf(name), `run ${run}`, this.#fifo(name, run));
    }
  }

  /** Its runs, as far as they began. */
  sections(name: string): Section[] {
    return this.#runs.map((run) => this.#observer.section(this.#groupOf(name), `run ${run}`)).filter((one) =>
      one !== null
    );
  }

  /** Runs that are open, of the pool of this name. */
  openOf(pool: string): Section[] {
    return this.names.flatMap((name) => this.sections(name)).filter(({ text, closedMs }) =>
      closedMs === null && text.split("\n")[0]?.endsWith(` ${pool}`)
    );
  }

  close(): void {
    killHolders(this.folder, this.#observer.pid);
    for (const name of this.names) this.#observer.forget(this.#groupOf(name));
  }

  #groupOf(name: string): string {
    return `${this.#group}-${name}`;
  }

  #fifo(name: string, run: number): string {
    return join(this.folder, name, `life-${run}`);
  }
}

/**
 * Judges one run that ends by itself: with `--once` when what was due at its start was tried, with `--until-empty` when
 * no message can be tried. It compares the end of the run with the rows of the store, not with what the processor has
 * read.
 */
import type { BatonError } from "../../../../src/base/errors.ts";
import type { RetryOrder, ServiceStore, StoreMethod, StoreMethods } from "../../../../src/retry/queue/store_methods.ts";
import type { SqlRow } from "../../../../src/base/storage/sql_row.ts";
import type { SimProcess } from "../../../world/sim_process.ts";
import type { RetryDisk } from "./retry_disk.ts";
import type { RetryOracle } from "./retry_oracle.ts";

export type Ending = "tried" | "empty";

export const endingFlags: Readonly<Record<Ending, string>> = { tried: "--once", empty: "--until-empty" };

export interface EndingRunOptions {
  readonly disk: RetryDisk;
  readonly oracle: RetryOracle;
  readonly until: Ending;
  readonly order: RetryOrder;
  /** A batch leaves messages to the next run. */
  readonly hasBatch: boolean;
}

const openRows = "SELECT seq, key, fence, next_ms FROM messages WHERE state < 2 ORDER BY seq";
const dueRows = "SELECT seq, key, fence, next_ms FROM messages WHERE state = 0 AND next_ms <= ? ORDER BY seq";

export class EndingRun {
  readonly #process: SimProcess;
  readonly #options: EndingRunOptions;
  #startMs = 0;
  #steps = 0;
  #due: readonly SqlRow[] = [];
  /** When the newest answers were asked for that let the run end; null: none. */
  #emptyAskedMs: number | null = null;
  #lettersAskedMs: number | null = null;
  #hasLetters = false;
  readonly #tried = new Set<string>();

  constructor(process: SimProcess, options: EndingRunOptions) {
    this.#process = process;
    this.#options = options;
  }

  /** The store is open, and the run begins. */
  begin(): void {
    const { world, machine } = this.#process;
    this.#startMs = world.nowMs;
    this.#steps = machine.wallSteps.length;
    this.#due = this.#options.disk.read(dueRows, machine.wallMs()) ?? [];
  }

  /** The store as the processor uses it. */
  watch(store: ServiceStore): ServiceStore {
    const call = async <Name extends StoreMethod>(name: Name, ...values: Parameters<StoreMethods[Name]>) => {
      const askedMs = this.#process.world.nowMs;
      const answer = await store.call(name, ...values);
      if (name === "canBeTried" && answer === false) this.#emptyAskedMs = askedMs;
      if (name === "deadLetterBacklog") {
        this.#lettersAskedMs = askedMs;
        this.#hasLetters = (answer as { readonly count: number }).count > 0;
      }
      return answer;
    };
    return { ...store, call };
  }

  /** The run has ended with success. */
  ended(): void {
    const { world } = this.#process;
    const { until, oracle } = this.#options;
    world.count(`mark run ${endingFlags[until]} ended`);
    if (until === "empty") this.#checkEmpty();
    else this.#checkTried();
    const letters = this.#letters().filter(({ seq }) =>
      oracle.isDeadSince(Number(seq), this.#lettersAskedMs ?? world.nowMs)
    );
    if (letters.length > 0) this.#fail(`with success while dead letter ${letters[0]?.["seq"]} is not delivered`);
  }

  /** The run has ended with an error. True: it is one that a run that ends by itself may have. */
  failed({ code }: BatonError): boolean {
    if (code !== "UNREACHABLE") return false;
    this.#process.world.count("mark run ended with a dead letter in the store");
    if (!this.#hasLetters) this.#fail("with UNREACHABLE, and no dead letter was in the store");
    return true;
  }

  #fail(how: string): void {
    const { name, world } = this.#process;
    world.fail("run ended wrong", `${name} with ${endingFlags[this.#options.until]} ended ${how}`);
  }

  #letters(): SqlRow[] {
    return this.#options.disk.read("SELECT seq FROM messages WHERE state = 3 AND forwarding IN (1, 2)") ?? [];
  }

  /** What was stored before the run looked, and was not redriven since, is at its end. */
  #checkEmpty(): void {
    const { disk, oracle } = this.#options;
    const lookedMs = this.#emptyAskedMs ?? this.#startMs;
    const left = (disk.read(openRows) ?? []).find(({ seq }) => oracle.isOpenSince(Number(seq), lookedMs));
    if (left !== undefined) this.#fail(`while message ${left["seq"]} is not at its end`);
  }

  /** What was due at the start was claimed by some processor, or changed by an operator. */
  #checkTried(): void {
    const { disk, oracle, order, hasBatch } = this.#options;
    const { machine, world } = this.#process;
    const open = disk.read(openRows) ?? [];
    if (open.length > 0) world.count("mark run --once left messages");
    const isExempt = hasBatch || machine.wallSteps.length > this.#steps ||
      oracle.wasPausedSince(this.#startMs);
    if (isExempt) return;
    const isOrdered = (key: unknown) => order === "fifo" || (order === "key" && key !== null);
    // Others of its key, or all, may have been in flight at another processor.
    const hasOthers = !oracle.wasAloneSince(this.#process, this.#startMs);
    for (const due of this.#due) {
      const { seq, key } = due;
      const now = open.find((row) => row["seq"] === seq);
      if (now === undefined || now["fence"] !== due["fence"] || now["next_ms"] !== due["next_ms"]) continue;
      const isBehind = open.some((row) => row["seq"] !== seq && (order === "fifo" || row["key"] === key));
      if (isOrdered(key) && (isBehind || hasOthers)) continue;
      return this.#fail(`while message ${seq}, which was due at its start, was not tried`);
    }
  }

  /** A message is tried once by a run with `--once`: what failed since waits for the next run. */
  began(id: string): void {
    const { until } = this.#options;
    const isAgain = this.#tried.has(id);
    this.#tried.add(id);
    if (until === "tried" && isAgain && this.#process.machine.wallSteps.length === this.#steps) {
      const { name, world } = this.#process;
      world.fail("tried twice by one run", `${id} by ${name} with --once`);
    }
  }
}

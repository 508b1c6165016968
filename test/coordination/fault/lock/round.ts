/**
 * One round: three contenders, one holds, something happens to it, the others get their turn; then what was seen is
 * judged.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serversThatEnded } from "../../../support/backend.ts";
import type { RunningBackend } from "../../../support/backends.ts";
import { fourLetterWord } from "../../../support/four_letter_word.ts";
import { eventually } from "../../../support/eventually.ts";
import { QuietTime } from "../../../support/quiet_time.ts";
import { seededRandom } from "../../../support/random.ts";
import { type ChildKind, Contender, type Wrapper } from "./contender.ts";
import { judge, type RoundResult } from "./judge.ts";
import type { ObserverProcess } from "./observer_process.ts";
import type { RoundPlan } from "./plan.ts";
import { heardOut, untilContenders, wait } from "./round_waits.ts";
import { againUnlessServed, type Attempt, commits } from "./attempts.ts";

export interface RoundOptions {
  readonly wrapper: Wrapper;
  readonly observer: ObserverProcess;
  /** T, in milliseconds. */
  readonly sessionTimeoutMs: number;
}

const contenders = 3;
/** For what should come at once, on a machine that does many things at a time. */
const patienceMs = 120_000;

/** Default of `--kill-after`, in milliseconds: a child that ignores the stop signal lives this long after it. */
const killAfterMs = 5000;

/**
 * Returns the time from the end of a fault after which its victim has lost the lock or keeps it, in milliseconds. The
 * lease is not renewed for T/4 after a long silence, so the stop signal can come that late. T/2 is for a busy machine.
 */
function settledMs(sessionTimeoutMs: number): number {
  return sessionTimeoutMs * 3 / 4 + killAfterMs;
}

let rounds = 0;

export function runRound(plan: RoundPlan, options: RoundOptions): Promise<RoundResult> {
  return againUnlessServed(plan.number, () => tryRound(plan, options));
}

async function tryRound(plan: RoundPlan, options: RoundOptions): Promise<Attempt<RoundResult>> {
  const group = `round-${rounds++}`;
  const folder = mkdtempSync(join(tmpdir(), "baton-fault-"));
  const backend = await plan.backend.start();
  const closers = [() => backend.close()];
  try {
    const result = await new Round(plan, { ...options, group, folder, backend, closers }).run();
    // Two holders at once are a failure whatever the servers do.
    const isClear = result.failures.length === 0 || result.overlapMs > 0;
    return { result, isServed: isClear || await commits(backend) };
  } finally {
    options.observer.forget(group);
    for (const close of closers.reverse()) await close().catch((error) => console.error(error));
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Place extends RoundOptions {
  readonly group: string;
  readonly folder: string;
  readonly backend: RunningBackend;
  readonly closers: (() => Promise<void>)[];
}

class Round {
  readonly #plan: RoundPlan;
  readonly #place: Place;
  readonly #random: () => number;
  readonly #failures: string[] = [];
  readonly #contenders: Contender[] = [];
  #sinceFault = new QuietTime();
  /** See Evidence. */
  #busyMs = 0;

  constructor(plan: RoundPlan, place: Place) {
    this.#plan = plan;
    this.#place = place;
    this.#random = seededRandom(plan.seed);
  }

  async run(): Promise<RoundResult> {
    const { observer } = this.#place;
    let faultMs = 0;
    let toldToLeave = false;
    try {
      const victim = await this.#start("victim", this.#plan.childKind);
      await this.#until(() => victim.section !== null, "the victim to hold the lock", [victim]);
      const measuresTakeOver = this.#plan.fault.expect === "killed";
      const ephemerals = measuresTakeOver ? await this.#ephemerals() : 0;
      for (let number = 1; number < contenders; number++) await this.#start(`waiter ${number}`, "plain");
      if (measuresTakeOver) {
        // How soon the next one has the lock says nothing while it still starts: a Java program takes seconds.
        const areInLine = async () => await this.#ephemerals() >= ephemerals + contenders - 1;
        await this.#until(areInLine, "the others to stand in line", this.#contenders);
      }
      await wait(this.#random() * 1500);
      faultMs = await observer.now();
      this.#sinceFault = new QuietTime();
      await this.#plan.fault.apply({
        backend: this.#place.backend,
        victim,
        sessionTimeoutMs: this.#place.sessionTimeoutMs,
        random: this.#random,
        wait,
      });
      toldToLeave = await this.#letVictimEnd(victim);
      const comesBack = victim.comesBack && !toldToLeave && this.#plan.fault.expect !== "killed";
      if (comesBack) {
        victim.proxies.forEach((proxy) => proxy.heal());
        victim.watch();
      }
      await this.#letOthersThrough(this.#contenders.filter((contender) => contender !== victim || comesBack));
      victim.proxies.forEach((proxy) => proxy.heal());
      const sectionsEnded = () =>
        this.#contenders.every(({ section, exit }) => exit !== null && section?.closedMs !== null);
      await this.#until(sectionsEnded, "the end of every wrapper and of every process of its child", this.#contenders);
    } catch (error) {
      this.#failures.push(error instanceof Error ? error.message : String(error));
    }
    const endMs = await observer.now();
    await heardOut(this.#contenders);
    this.#failures.push(...serversThatEnded(this.#place.backend.nodes));
    return judge(this.#plan, {
      contenders: this.#contenders,
      failures: this.#failures,
      toldToLeave,
      faultMs,
      busyMs: this.#busyMs,
      endMs,
    });
  }

  /** Counts the ephemeral nodes. A contender in line has one, whatever its recipe. */
  async #ephemerals(): Promise<number> {
    const [node] = this.#place.backend.nodes;
    if (node === undefined) throw new Error("No server runs");
    const told = await fourLetterWord(node.address, "mntr", patienceMs);
    const count = /^zk_ephemerals_count\t(\d+)$/m.exec(told)?.[1];
    if (count === undefined) throw new Error("The server does not tell its number of ephemeral nodes");
    return Number(count);
  }

  async #start(name: string, childKind: ChildKind): Promise<Contender> {
    const { backend, closers, ...place } = this.#place;
    const contender = await Contender.start(backend, { ...place, name, childKind, lock: "fault" });
    closers.push(() => contender.close());
    this.#contenders.push(contender);
    return contender;
  }

  /** Whether the victim still had the lock when the fault was over, and was told to give it up. */
  async #letVictimEnd(victim: Contender): Promise<boolean> {
    const { expect } = this.#plan.fault;
    const { sessionTimeoutMs } = this.#place;
    const settled = eventually(() => !victim.isIn, {
      withinMs: expect === "survives" ? sessionTimeoutMs / 2 : settledMs(sessionTimeoutMs),
      isExact: expect === "survives" || expect === "either",
    });
    if (await settled.then(() => true, () => false)) return false;
    if (expect === "loses" || expect === "killed") {
      this.#failures.push(`the victim's child still runs ${settledMs(sessionTimeoutMs)} ms after the fault`);
    }
    victim.letLeave();
    return true;
  }

  async #letOthersThrough(contenders: readonly Contender[]): Promise<void> {
    const waiting = new Set(contenders);
    while (waiting.size > 0) {
      const next = await this.#until(
        () => [...waiting].find(({ section, exit }) => section !== null || exit !== null),
        "the next contender to get the lock",
        waiting,
      );
      this.#busyMs ||= this.#sinceFault.busyMs;
      waiting.delete(next);
      await wait(this.#random() * 300);
      next.letLeave();
    }
  }

  #until<T>(condition: () => T | Promise<T>, what: string, contenders: Iterable<Contender>) {
    return untilContenders(condition, { withinMs: patienceMs, what, contenders, backend: this.#place.backend });
  }
}

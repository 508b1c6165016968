/**
 * One round: two wait at a barrier of three, or three run; something happens to one of them; then what was seen is
 * judged.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serversThatEnded } from "../../../support/backend.ts";
import type { RunningBackend } from "../../../support/backends.ts";
import { batonCommand } from "../../../support/keeper_server.ts";
import { seededRandom } from "../../../support/random.ts";
import { Contender, type Exit } from "../lock/contender.ts";
import type { ObserverProcess } from "../lock/observer_process.ts";
import { untilContenders, wait } from "../lock/round_waits.ts";
import { againUnlessServed, type Attempt, commits } from "../lock/attempts.ts";
import { sessionTimeoutMs } from "../lock/wrappers.ts";
import { type BarrierResult, judgeBarrier, type MemberEvidence, parties } from "./judge.ts";
import type { BarrierPlan } from "./plan.ts";

/** Long enough for a session to end and another member to come; then a member that is left over gives up. */
const waitMs = 5 * sessionTimeoutMs;
/** For what should come at once, on a machine that does many things at a time. */
const patienceMs = waitMs + 30_000;

let rounds = 0;

export function runBarrierRound(plan: BarrierPlan, observer: ObserverProcess): Promise<BarrierResult> {
  return againUnlessServed(plan.number, () => tryRound(plan, observer));
}

async function tryRound(plan: BarrierPlan, observer: ObserverProcess): Promise<Attempt<BarrierResult>> {
  const folder = mkdtempSync(join(tmpdir(), "baton-fault-"));
  const group = `barrier-${rounds++}`;
  const backend = await plan.backend.start();
  const round = new Round(plan, { folder, group, backend, observer });
  try {
    const result = await round.run();
    // An early release is a failure whatever the servers do.
    const isClear = result.failures.length === 0 || result.failures.some((failure) => failure.startsWith("early"));
    return { result, isServed: isClear || await commits(backend) };
  } finally {
    observer.forget(group);
    await round.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Place {
  readonly folder: string;
  readonly group: string;
  readonly backend: RunningBackend;
  readonly observer: ObserverProcess;
}

interface Member {
  readonly contender: Contender;
  readonly spawnedMs: number;
  endedMs: number | null;
  stopped: [number, number][];
}

class Round {
  readonly #plan: BarrierPlan;
  readonly #place: Place;
  readonly #random: () => number;
  readonly #failures: string[] = [];
  readonly #members: Member[] = [];

  constructor(plan: BarrierPlan, place: Place) {
    this.#plan = plan;
    this.#place = place;
    this.#random = seededRandom(plan.seed);
  }

  async run(): Promise<BarrierResult> {
    try {
      await (this.#plan.phase === "waiting" ? this.#whileWaiting() : this.#whileRunning());
      await this.#letAllEnd();
    } catch (error) {
      this.#failures.push(error instanceof Error ? error.message : String(error));
    }
    this.#failures.push(...serversThatEnded(this.#place.backend.nodes));
    await this.#place.observer.now();
    return judgeBarrier(this.#plan, { members: this.#members.map(evidenceOf), failures: this.#failures });
  }

  async close(): Promise<void> {
    await Promise.all(this.#members.map(({ contender }) => contender.close()));
    await this.#place.backend.close();
  }

  /** Two wait, the fault comes, then the third; a killed one is started again before that. */
  async #whileWaiting(): Promise<void> {
    const victim = await this.#start("victim");
    const other = await this.#start("second");
    for (const { contender } of [victim, other]) {
      await this.#until(() => contender.stderr.includes("2 of 3 are here") || contender.exit !== null, "two to wait");
      if (this.#sees(2)) break;
    }
    await wait(this.#random() * 300);
    if (this.#plan.restarts) {
      victim.contender.signal("SIGKILL");
      await this.#until(() => victim.contender.exit !== null, "the victim to end");
      await this.#noteEnds();
      await this.#start("victim again");
      await wait(this.#random() * 500);
    } else {
      await this.#hit(victim);
    }
    await this.#start("third");
    const isGone = this.#plan.restarts ? false : this.#plan.fault.expect !== "survives";
    if (isGone && this.#plan.onLost === "wait") await this.#start("another");
  }

  async #whileRunning(): Promise<void> {
    const victim = await this.#start("victim");
    await this.#start("second");
    await this.#start("third");
    await this.#until(() => this.#members.every(({ contender }) => contender.section !== null), "three to run");
    await this.#hit(victim);
    // Long enough for a lease to end that nothing has renewed since the fault began.
    if (this.#plan.fault.expect === "loses") {
      await this.#until(() => !victim.contender.isIn, "the victim's command to be stopped");
    }
  }

  async #hit(victim: Member): Promise<void> {
    const fromMs = await this.#place.observer.now();
    await this.#plan.fault.apply({
      backend: this.#place.backend,
      victim: victim.contender,
      sessionTimeoutMs,
      random: this.#random,
      wait,
    });
    if (this.#plan.fault.expect === "killed") {
      await this.#until(() => victim.contender.exit !== null, "the victim to end");
    }
    await this.#noteEnds();
    const isStop = this.#plan.fault.name.startsWith("wrapper stopped");
    if (isStop) victim.stopped.push([fromMs, await this.#place.observer.now()]);
  }

  /** Whoever has begun is told to end, one later than another; whoever has not waits for others, or gives up. */
  async #letAllEnd(): Promise<void> {
    const told = new Map<Member, Promise<void>>();
    await this.#until(async () => {
      for (const member of this.#members) {
        if (member.contender.section === null || told.has(member)) continue;
        told.set(member, wait(this.#random() * 1000).then(() => member.contender.letLeave()));
      }
      await this.#noteEnds();
      return this.#members.every(({ contender, endedMs }) => endedMs !== null && !contender.isIn);
    }, "the end of every wrapper and of every process of its command").finally(() => Promise.all(told.values()));
  }

  async #noteEnds(): Promise<void> {
    const ended = this.#members.filter(({ contender, endedMs }) => contender.exit !== null && endedMs === null);
    if (ended.length === 0) return;
    const nowMs = await this.#place.observer.now();
    for (const member of ended) member.endedMs = nowMs;
  }

  async #start(name: string): Promise<Member> {
    const { observer, ...place } = this.#place;
    const { onLost, childKind } = this.#plan;
    const words = ["-v", "-N", String(parties), "--on-member-lost", onLost, "-w", `${waitMs}ms`];
    const spawnedMs = await observer.now();
    const contender = await Contender.start(place.backend, {
      folder: place.folder,
      group: place.group,
      observer,
      name,
      lock: "fault",
      childKind: name === "victim" ? childKind : "plain",
      sessionTimeoutMs,
      wrapper: {
        name: "baton barrier",
        command: (barrier, child) => [...batonCommand(), "barrier", barrier, ...words, "--", ...child],
      },
    });
    const member: Member = { contender, spawnedMs, endedMs: null, stopped: [] };
    this.#members.push(member);
    return member;
  }

  #sees(count: number): boolean {
    return this.#members.some(({ contender }) => contender.stderr.includes(`${count} of ${parties} are here`));
  }

  async #until<T>(condition: () => T | Promise<T>, what: string): Promise<void> {
    const contenders = this.#members.map(({ contender }) => contender);
    const { backend } = this.#place;
    await untilContenders(condition, { withinMs: patienceMs, what, everyMs: 10, contenders, backend });
  }
}

function evidenceOf({ contender, spawnedMs, endedMs, stopped }: Member): MemberEvidence {
  const { name, section, stderr } = contender;
  const exit: Exit | null = contender.exit;
  return { name, section, exit, stderr, spawnedMs, endedMs, stoppedMs: stopped };
}

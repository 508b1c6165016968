/**
 * Judges a message store: every try when it starts, by what its processors were told is on the disk; and the end, by
 * the judge of the fault campaigns. It knows true time, and how the wall clock was set.
 */
import { judgeRound, type SeenTry } from "../../fault/retry/judge.ts";
import type { RetryPolicy } from "../../../../src/retry/queue/retry_policy.ts";
import type { ServiceStore, StoreMethod, StoreMethods, TryReport } from "../../../../src/retry/queue/store_methods.ts";
import type { ClaimedMessage } from "../../../../src/retry/queue/stored_message.ts";
import type { TryLease } from "../../../../src/retry/queue/processor_lease.ts";
import type { TryResult } from "../../../../src/retry/targets/target.ts";
import type { DatabaseRow } from "../../../../src/base/storage/sql_row.ts";
import { type MessageLife, messageStates } from "../../../../src/retry/queue/message_life.ts";
import type { SimMachine, SimProcess } from "../../../world/sim_process.ts";
import type { SimWorld } from "../../../world/sim_world.ts";
import { textInRow } from "../../../../src/retry/queue/message_row.ts";
import { LetterRuns } from "./letter_sinks.ts";
import { finalInCall } from "./message_load.ts";
import { leastDelayMs, slackMs, whyTooLate, whyTooOldTooEarly } from "./policy_judge.ts";

export interface SimTry {
  readonly id: string;
  readonly fence: number;
  readonly tries: number;
  readonly process: SimProcess;
  readonly life: number;
  readonly startMs: number;
  /** True time at which nothing of it ran; null: it runs. */
  endMs: number | null;
  /** The status or the exit code; null: it was cut off. */
  answer: number | null;
  retryAfterMs: number;
  /** Its process has seen its end: if it was not counted, its message had been taken back before. */
  hasResult: boolean;
  /** What its machine had been suspended when it started. */
  readonly suspendedMs: number;
}

interface KnownMessage {
  readonly tries: SimTry[];
  /** Its sender was told that it is stored. */
  isTold: boolean;
  toldMs: number;
  /** Its result was recorded: it must not be tried again. */
  end: string | null;
  endMs: number;
  /** When an operator changed it last. */
  touchedMs: number;
  /** When an operator redrove it last, if no try has shown yet whether that is on the disk. */
  redrivenAtMs: number | null;
  /** The first of its tries since it was stored or redriven, and the time since which it is judged. */
  first: number;
  sinceMs: number;
  /** An operator has changed it. */
  isTouched: boolean;
  isForced: boolean;
  isCancelled: boolean;
  isPurged: boolean;
  /** When an operator was told that it is purged. */
  purgedMs: number;
  fence: number;
}

/** Numbers and states of the open messages besides this one, the oldest first; those of a key, or all (null). */
export type OpenBeside = (seq: number, key: string | null) => readonly DatabaseRow[];

export interface OracleOptions {
  readonly policy: RetryPolicy;
  readonly maxCrashes: number;
  readonly order: "none" | "key" | "fifo";
  readonly kind: "http" | "command";
  readonly drops: boolean;
  /** The maximum number of tries of one processor at the same time. */
  readonly concurrency: number;
  /** The store is in a database, whose clock is exact, and which may answer long after it has written. */
  readonly database?: {
    /** Whether the result of the try with this fencing number is written. */
    readonly isWritten: (seq: number, fence: number) => boolean;
    /** The duration of a lease, in milliseconds: a claim that is answered late is tried before its end. */
    readonly leaseMs: number;
  };
}

/** The longest time after the end of a lease until its tries have ended, in milliseconds. */
const lateMsMax = 1000;

/** The longest time from the claim of a message in a file to its try, in a process that runs, in milliseconds. */
const claimedMs = 1000;

const exactClock = { wallSteps: [], clockRate: 1 } as const satisfies Pick<SimMachine, "wallSteps" | "clockRate">;

export class RetryOracle {
  readonly world: SimWorld;
  readonly #openBeside: OpenBeside;
  readonly #options: OracleOptions;
  readonly #messages = new Map<string, KnownMessage>();
  readonly letterRuns: LetterRuns;
  #pausedUntilMs = -Infinity;
  /** When the pause that is in force was on the disk; null without one. */
  #pausedSinceMs: number | null = null;
  /** The end of the lease of each processor, as the store has it: on the boot clock. */
  readonly #leaseEndMs = new Map<number, number>();
  /** When messages were taken back from processors whose leases had ended. */
  readonly #reclaimsMs: number[] = [];

  constructor(world: SimWorld, openBeside: OpenBeside, options: OracleOptions) {
    this.world = world;
    this.#openBeside = openBeside;
    this.#options = options;
    this.letterRuns = new LetterRuns(world, (id) => this.#message(id));
  }

  #message(id: string): KnownMessage {
    let message = this.#messages.get(id);
    if (message === undefined) {
      message = {
        ...{ tries: [], isTold: false, toldMs: Infinity, end: null, endMs: Infinity, touchedMs: -Infinity },
        ...{ redrivenAtMs: null, first: 0, sinceMs: Infinity, isTouched: false, isForced: false },
        ...{ isCancelled: false, isPurged: false, purgedMs: Infinity, fence: 0 },
      };
      this.#messages.set(id, message);
    }
    return message;
  }

  /** The ids of messages that were told to be stored. */
  get told(): string[] {
    return [...this.#messages].filter(([, { isTold }]) => isTold).map(([id]) => id);
  }

  /** A process in the middle of a try. */
  holder(): SimProcess | undefined {
    const open = [...this.#messages.values()].flatMap(({ tries }) => tries.filter(({ endMs }) => endMs === null));
    return open.at(-1)?.process;
  }

  /** `askedMs`: when the store, or the service, was asked to keep the message. */
  accepted(id: string, askedMs: number): void {
    this.world.log(() => `accepted ${id}`);
    this.world.count("messages accepted");
    const message = this.#message(id);
    if (message.isTold) this.world.fail("id given twice", id);
    message.isTold = true;
    message.toldMs = this.world.nowMs;
    message.sinceMs = Math.min(message.sinceMs, askedMs);
  }

  /** An operator is about to change a message. */
  touched(id: string, change: "retry" | "cancel" | "redrive" | "purge"): void {
    const message = this.#message(id);
    this.world.count(`mark ${change}`);
    message.isForced = true; // the next try may come at any time
    message.touchedMs = this.world.nowMs;
    if (change === "retry") return;
    message.isTouched = true;
    if (change === "redrive") {
      message.end = null;
      message.redrivenAtMs = this.world.nowMs;
    }
    if (change === "cancel") message.isCancelled = true;
    if (change === "purge") message.isPurged = true;
  }

  /** The change is on the disk. */
  changed(id: string, change: "cancel" | "purge"): void {
    this.#message(id).end = change === "cancel" ? "cancelled" : "purged";
    if (change === "purge") this.#message(id).purgedMs = this.world.nowMs;
  }

  /** An operator is about to pause the store. */
  pausing(): void {
    this.world.count("mark store paused");
    this.#pausedUntilMs = Infinity;
  }

  /** A pause is on the disk. */
  paused(): void {
    this.#pausedSinceMs = this.world.nowMs;
  }

  /** An operator is about to end a pause. */
  resuming(): void {
    this.#pausedSinceMs = null;
  }

  /** The end of a pause is on the disk. */
  resumed(): void {
    if (this.#pausedUntilMs === Infinity) this.#pausedUntilMs = this.world.nowMs;
  }

  wasPausedSince(ms: number): boolean {
    return this.#pausedUntilMs >= ms;
  }

  /** Whether a message was known to be stored before this time, and was not changed by an operator since. */
  isOpenSince(seq: number, ms: number): boolean {
    const message = this.#bySeq(seq)?.[1];
    return message !== undefined && message.toldMs < ms && message.touchedMs < ms;
  }

  /** Whether a message was known to be dead before this time, and no operator has changed it. */
  isDeadSince(seq: number, ms: number): boolean {
    const message = this.#bySeq(seq)?.[1];
    return message?.end === "dead" && message.endMs < ms && !message.isTouched;
  }

  /**
   * Whether since this time no other process has tried messages, or left some in flight, and no operator has changed
   * any.
   */
  wasAloneSince(process: SimProcess, ms: number): boolean {
    return [...this.#messages.values()].every(({ tries, touchedMs }) =>
      touchedMs < ms &&
      tries.every((one) => one.process === process || (one.endMs !== null && one.endMs < ms && one.hasResult))
    );
  }

  /** A try starts. */
  began(process: SimProcess, { id, fence, tries, key, seq }: ClaimedMessage): SimTry {
    const { world } = this;
    const message = this.#message(id);
    const startMs = world.nowMs;
    const started = {
      id,
      fence,
      tries,
      process,
      life: process.life,
      startMs,
      endMs: null,
      answer: null,
      retryAfterMs: 0,
      hasResult: false,
      suspendedMs: process.machine.suspendedMs,
    };
    world.log(() => `${process.name} tries ${id}, fence ${fence}, after ${tries} tries`);
    world.count("tries");
    if (message.end !== null) {
      world.fail("tried after its end", `${id} is ${message.end}, and ${process.name} tries it`);
    }
    if (message.tries.some((one) => one.fence >= fence)) {
      world.fail("fence used twice", `${id}, ${fence} after ${message.tries.map((one) => one.fence).join(", ")}`);
    }
    const beside = message.tries.find((one) => this.#isBeside(one));
    if (beside !== undefined) {
      world.fail(
        "two tries at the same time",
        `${id} by ${process.name} and ${beside.process.name}, since ${beside.startMs}`,
      );
    }
    this.#checkConcurrency(process);
    if (message.redrivenAtMs !== null) {
      Object.assign(message, { first: message.tries.length, sinceMs: message.redrivenAtMs, redrivenAtMs: null });
    }
    this.#checkPause(process, id);
    this.#checkDelay(process, message, started);
    this.#checkOrder(id, key, seq);
    if (tries > this.#options.policy.maxRetries) world.fail("too many tries", `${id}: ${tries} before this one`);
    message.tries.push(started);
    message.isForced = false;
    message.fence = Math.max(message.fence, fence);
    return started;
  }

  /**
   * A try by HTTP has ended: not much later than its lease, as the store has its end. A process that was suspended sees
   * the end when it renews the next time.
   */
  checkLease({ id, process, life }: SimTry, lease: TryLease, bootMs: number): void {
    const { name, machine, runsSinceMs } = process;
    const endMs = this.#leaseEndMs.get(Number(lease.sessionId));
    if (process.life !== life || endMs === undefined) return;
    const lateMs = bootMs - endMs;
    const runsForMs = this.world.nowMs - Math.max(runsSinceMs, machine.wokenAtMs);
    if (lateMs < lateMsMax || runsForMs < lateMsMax + lease.sessionTimeoutMs / 2) return;
    this.world.fail("tried beyond its lease", `${id} by ${name}, for ${lateMs.toFixed(0)} ms`);
  }

  #checkConcurrency(process: SimProcess): void {
    const { concurrency } = this.#options;
    const isOwn = (one: SimTry) => one.endMs === null && one.process === process && one.life === process.life;
    const open = [...this.#messages.values()].reduce((sum, { tries }) => sum + tries.filter(isOwn).length, 1);
    if (open > concurrency) {
      this.world.fail("too many tries at the same time", `${process.name}: ${open}, of ${concurrency}`);
    }
    if (open === concurrency && open > 1) this.world.count("mark as many tries at the same time as allowed");
  }

  /**
   * Whether a try runs. What a stopped or suspended process has asked by HTTP is open until it looks at its lease: no
   * other can end it.
   */
  #isBeside({ endMs, process, suspendedMs }: SimTry): boolean {
    if (endMs !== null || this.#options.kind === "command") return endMs === null;
    return process.state !== "stopped" && suspendedMs === process.machine.suspendedMs;
  }

  ended(one: SimTry, answer: number | null, result: TryResult | null = null): void {
    if (one.endMs !== null) return;
    this.world.log(() => `${one.process.name}: the try of ${one.id} ended, ${answer ?? "cut off"}`);
    one.endMs = this.world.nowMs;
    one.answer = answer;
    one.hasResult = result !== null;
    if (result?.kind === "tried") one.retryAfterMs = result.end.retryAfterMs ?? 0;
  }

  /** A message that was claimed before the pause may be tried a little later. */
  #checkPause(process: SimProcess, id: string): void {
    const sinceMs = this.#pausedSinceMs;
    const lateMs = this.#options.database?.leaseMs ?? claimedMs;
    if (sinceMs === null || this.world.nowMs < sinceMs + lateMs) return;
    if (Math.max(process.runsSinceMs, process.machine.wokenAtMs) > sinceMs) return;
    this.world.fail("tried in a pause", `${id} by ${process.name}, paused since ${sinceMs}`);
  }

  #checkDelay(process: SimProcess, message: KnownMessage, next: SimTry): void {
    const last = message.tries.at(-1);
    if (last === undefined || last.endMs === null || message.isForced || next.tries === 0) return;
    const isCounted = next.tries > last.tries;
    if (last.hasResult && !isCounted) return;
    const least = Math.max(leastDelayMs(this.#options.policy, next.tries), isCounted ? last.retryAfterMs : 0);
    const { wallSteps, clockRate } = this.#options.database === undefined ? process.machine : exactClock;
    // The message of a stopped process may have been taken back before that process died.
    const takenBackMs = this.#reclaimsMs.find((atMs) => atMs > last.startMs) ?? Infinity;
    const endMs = last.hasResult ? last.endMs : Math.min(last.endMs, takenBackMs);
    const steps = wallSteps.filter(({ atMs, byMs }) => byMs > 0 && atMs >= endMs);
    const waited = (next.startMs - endMs) * clockRate + steps.reduce((sum, { byMs }) => sum + byMs, 0);
    if (waited >= least - slackMs) return;
    this.world.fail("too early", `${next.id}: ${waited.toFixed(1)} ms after try ${next.tries}, the least is ${least}`);
  }

  #checkOrder(id: string, key: string | null, seq: number): void {
    const { order } = this.#options;
    if (order === "none" || (order === "key" && key === null)) return;
    const open = this.#openBeside(seq, order === "fifo" ? null : key);
    for (const row of open) {
      const other = Number(row["seq"]);
      const otherId = `${id.slice(0, id.lastIndexOf("-"))}-${other}`;
      if (Number(row["state"]) === 1) {
        return this.world.fail("order", `${id} is tried while ${otherId} is in flight`);
      }
      // A message that comes back waits for those that are in flight, and is then the first.
      if (other < seq && !this.#message(otherId).isTouched) {
        return this.world.fail("order", `${id} is tried before ${otherId}, which is older`);
      }
    }
    if (open.length > 0) this.world.count("mark message waits behind another one");
  }

  /** The store of a processor, as it is used: what was answered is on the disk. */
  watch(store: ServiceStore): ServiceStore {
    const call = async <Name extends StoreMethod>(name: Name, ...values: Parameters<StoreMethods[Name]>) => {
      if (name === "markForwarded") {
        try {
          return await store.call(name, ...values);
        } catch (error) {
          this.letterRuns.unrecorded((values as Parameters<StoreMethods["markForwarded"]>)[0]);
          throw error;
        }
      }
      if (name === "markForwarding") this.letterRuns.asking(Number(values[0]));
      if (name === "reclaim") {
        const askedMs = this.world.nowMs;
        const count = await store.call(name, ...values);
        if (Number(count) > 0) this.#reclaimsMs.push(askedMs);
        return count;
      }
      if (name === "register" || name === "renew") {
        const answer = await store.call(name, ...values);
        const [owner, endMs] = name === "renew" ? values : [answer, values[1]];
        if (answer !== false) this.#leaseEndMs.set(Number(owner), Number(endMs));
        return answer;
      }
      if (name !== "finish") return await store.call(name, ...values);
      const [report] = values as Parameters<StoreMethods["finish"]>;
      const newest = this.#newestFence(report.seq);
      const life = await store.call("finish", report);
      if (life !== null) this.#finished(report, newest, life);
      return life as ReturnType<StoreMethods[Name]>;
    };
    return {
      call,
      checkForChanges: () => store.checkForChanges(),
      close: () => store.close(),
      [Symbol.asyncDispose]: () => store.close(),
    };
  }

  #bySeq(seq: number): readonly [string, KnownMessage] | undefined {
    return [...this.#messages].find(([id]) => id.endsWith(`-${seq}`));
  }

  #newestFence(seq: number): number {
    return this.#bySeq(seq)?.[1].fence ?? 0;
  }

  /** `newest`: the fencing number of the last try that had started when the result was reported. */
  #finished({ seq, fence, nowMs, end }: TryReport, newest: number, life: MessageLife): void {
    const { state, tries, reason } = life;
    const [id, message] = this.#bySeq(seq) ?? [];
    if (id === undefined || message === undefined) {
      // A message of a submission that failed, and was stored, may be given back without a try.
      if (state !== "waiting") this.world.fail("unknown result", `message ${seq}`);
      return;
    }
    const own = message.tries.find((one) => one.fence === fence);
    this.world.log(() => `recorded ${id}, fence ${fence}: ${state} after ${tries} tries`);
    const { database } = this.#options;
    if (database !== undefined && !database.isWritten(seq, fence)) {
      this.world.fail("unwritten result counted", `${id}: ${fence}`);
    }
    if (database === undefined && fence < newest) {
      this.world.fail("stale result counted", `${id}: ${fence}, after ${newest}`);
    }
    if (fence < message.fence) return; // the answer was read late
    const { policy } = this.#options;
    // A process that was stopped does not know the clock of its database.
    if (state === "waiting" && end !== null && database === undefined) {
      const late = whyTooLate(policy, life, { nowMs, retryAfterMs: end.retryAfterMs ?? 0 });
      if (late !== null) this.world.fail("next try too late", `${id}: ${late}`);
    }
    if (reason === "too_old" && own !== undefined) {
      this.world.count("mark message too old");
      const early = whyTooOldTooEarly(policy, { ...message, recordedMs: this.world.nowMs }, own);
      if (early !== null) this.world.fail("too old too early", `${id}: ${early}`);
    }
    // A redrive may have come between the record and its answer.
    if (state === "waiting" || (message.isTouched && state !== "done")) return;
    if (state === "done" && (own?.answer === null || own === undefined)) {
      this.world.fail("done without success", `${id}, fence ${fence}`);
    }
    message.end = state;
    message.endMs = this.world.nowMs;
  }

  /**
   * Judges the store at the end. `rows`: of all messages; `letters`: ids of dead letters that were delivered, null if
   * none are sent.
   */
  judge(rows: readonly DatabaseRow[], nameOf: (seq: number) => string, found: {
    readonly letters: readonly string[] | null;
    /** The destination has each dead letter once. */
    readonly isOnce: boolean;
    readonly problems: readonly string[];
  }): void {
    const { world } = this;
    const { policy, maxCrashes, kind } = this.#options;
    const stored = rows.map((row) => {
      const [state, reason] = [messageStates[Number(row["state"])] ?? "", row["reason"] as string | null];
      const isDead = state === "dropped" && reason !== "purged"; // by --dead-letter drop
      const isOfCall = reason === "final" && textInRow(row["error"]) === finalInCall;
      return {
        ...{ id: nameOf(Number(row["seq"])), state: isDead ? "dead" : state },
        reason: isOfCall ? "final in call" : reason,
        ...{ tries: Number(row["tries"]), crashes: Number(row["crashes"]) },
      };
    });
    const ids = new Set(stored.map(({ id }) => id));
    for (const id of this.told) if (!ids.has(id)) return world.fail("lost", `${id} was accepted, and is not stored`);
    for (const { id, state, reason, crashes } of stored) {
      const { isCancelled, isPurged, tries } = this.#message(id);
      world.count(`mark ends ${state}${reason === null ? "" : ` (${reason})`}`);
      if (state === "cancelled" && !isCancelled) world.fail("lost", `${id} is cancelled, and no operator said so`);
      if (state === "dropped" && !isPurged) world.fail("lost", `${id} is dropped, and no operator said so`);
      if (reason === "crashed" && crashes !== maxCrashes) world.fail("ended too early", `${id}: ${crashes} crashes`);
      if (reason === "too_old" && policy.maxElapsedMs === null) {
        world.fail("ended too early", `${id} has no time limit`);
      }
      if (reason === "damaged") world.fail("damaged", id);
      if (state === "done" && !tries.some(({ answer }) => answer !== null && isDone(kind, answer))) {
        world.fail("done without success", id);
      }
    }
    // What an operator has ended is judged above; of a redriven one, what has happened since.
    const isJudged = (id: string) => {
      const { isCancelled, isPurged, redrivenAtMs } = this.#message(id);
      return !isCancelled && !isPurged && redrivenAtMs === null;
    };
    const own = stored.filter(({ id }) => isJudged(id));
    const ownIds = new Set(own.map(({ id }) => id));
    const seen = new Map<string, SeenTry[]>();
    for (const [id, { tries, first }] of this.#messages) {
      if (tries.length > 0 && isJudged(id)) seen.set(id, tries.slice(first));
    }
    const problems = judgeRound({
      maxRetries: policy.maxRetries,
      intervalMs: 0, // each try is compared with the clock of its machine when it starts
      isDone: (answer) => isDone(kind, answer),
      isFinal: (answer) => answer === (kind === "http" ? 422 : 65),
      told: this.told.filter((id) => ownIds.has(id)).length,
      stored: own,
      seen: kind === "command" ? seen : new Map([...seen].map(([id, tries]) => [id, withoutStopped(tries)])),
      letters: own.filter(({ id, state }) => state === "dead" && (found.letters?.includes(id) ?? true)).map(({ id }) =>
        id
      ),
      problems: found.problems,
    });
    if (problems[0] !== undefined) world.fail("judge", problems.join("; "));
    const { letters } = found;
    if (letters === null || !found.isOnce) return;
    const twice = letters.filter((id, at) => letters.indexOf(id) !== at && !this.#message(id).isTouched);
    if (twice[0] !== undefined) world.fail("judge", `the dead letter ${twice[0]} is in the file twice`);
  }
}

function isDone(kind: "http" | "command", answer: number): boolean {
  return answer === (kind === "http" ? 200 : 0);
}

/** A request of a stopped process is open until it goes on: it may overlap with the next one. */
function withoutStopped(tries: readonly SeenTry[]): SeenTry[] {
  return tries.map((one, at) => {
    const next = tries[at + 1];
    return next !== undefined && (one.endMs ?? Infinity) > next.startMs ? { ...one, endMs: next.startMs } : one;
  });
}

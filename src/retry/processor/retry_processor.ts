/**
 * The processor: takes messages that are due, tries them, and writes down what came of it. It decides little by itself: the store
 * and its pure functions say what becomes of a message, sampler, breaker and rate when one may be taken.
 *
 * Every try is claimed, durably, before it begins, under this processor's lease. When the lease is lost all tries end, what they
 * came to counts nothing, and the processor begins again under another one.
 */
import { BatonError } from "../../errors.ts";
import { onAbort } from "../../support/abort.ts";
import type { Clock } from "../../support/clock.ts";
import { sleep } from "../../support/deadline.ts";
import {
  type Breaker,
  breakerOpensAtMs,
  type BreakerOptions,
  callBegun,
  callEnded,
  callsAllowed,
  closedBreaker,
} from "./circuit_breaker.ts";
import type { MessageLife } from "../queue/message_life.ts";
import { ProcessorLease, type TryLease } from "../queue/processor_lease.ts";
import { filled, fullBucket, type Rate, type RateBucket, tokenAtMs } from "./rate_limit.ts";
import { nextWakeMs } from "./next_wake.ts";
import { type BatchPacer, type BatchPacerOptions, pacerAfterClaim, pacerAt, startPacer } from "./batch_pacer.ts";
import type { Order } from "../queue/due_messages.ts";
import { claimsMax } from "../queue/retry_store_limits.ts";
import type { StoreClient } from "../queue/store_methods.ts";
import type { ClaimedMessage } from "../queue/stored_message.ts";
import type { Target, TryResult } from "../targets/target.ts";

export type ProcessorEvent =
  | { readonly kind: "began"; readonly message: ClaimedMessage }
  | {
    readonly kind: "ended";
    readonly message: ClaimedMessage;
    readonly life: MessageLife;
    readonly error: string | null;
  }
  | { readonly kind: "given_back"; readonly message: ClaimedMessage; readonly why: string }
  /** Its end came too late to count. */
  | { readonly kind: "stale"; readonly message: ClaimedMessage }
  | { readonly kind: "reclaimed"; readonly count: number }
  | { readonly kind: "breaker"; readonly state: Breaker["kind"] }
  | { readonly kind: "lost" | "store_busy"; readonly why: string };

export interface RetryProcessorOptions {
  readonly store: StoreClient;
  readonly target: Target;
  readonly clock: Clock;
  readonly wallClockMs: () => number;
  /** The machine's boot, and milliseconds since it, which all processes of the machine share. */
  readonly boot: { readonly id: string; nowMs(): number };
  readonly pid: number;
  readonly leaseMs: number;
  readonly graceMs: number;
  readonly concurrency: number;
  readonly order: Order;
  readonly rate: Rate | null;
  readonly pacing: BatchPacerOptions;
  readonly breaker: BreakerOptions;
  /** How long tries may go on when the processor is asked to end. */
  readonly drainMs: number;
  /** It ends when all that was due has been tried once, or when nothing waits any more. */
  readonly until: "stopped" | "tried" | "empty";
  /** Where several processors elect one: whether this one may take messages now. Left out: always. `notice` tells of a change. */
  readonly leads?: (() => boolean) | undefined;
  readonly onEvent: (event: ProcessorEvent) => void;
}

/** Between two looks for what others have left behind. Milliseconds. */
const reclaimEveryMs = 1000;
/** Between two tries to write down an end that the store had no room or no time for. */
const busyRetryMs = 200;
const busyRetryMsMax = 5000;

export class RetryProcessor {
  readonly #options: RetryProcessorOptions;
  readonly #tries = new Set<Promise<void>>();
  #lease: ProcessorLease | null = null;
  #breaker: Breaker = closedBreaker;
  #bucket: RateBucket | null = null;
  #pacer: BatchPacer;
  #nextMs: number | null = null;
  /** The last claim had all that it asked for. */
  #hasMore = true;
  #startedMs: number;
  #isStopping = false;
  #failed: BatonError | null = null;
  #wake: () => void = () => {};
  #isAwake = true;
  readonly #timers: (() => void)[] = [];

  constructor(options: RetryProcessorOptions) {
    this.#options = options;
    this.#startedMs = options.wallClockMs();
    this.#pacer = startPacer(options.pacing, this.#startedMs);
  }

  get inFlight(): number {
    return this.#tries.size;
  }

  get breaker(): Breaker {
    return this.#breaker;
  }

  /** A call beside the tries is about to be made, by the same breaker. Null: it must not be. */
  beginCall(): { readonly isProbe: boolean } | null {
    if (callsAllowed(this.#breaker, this.#options.clock.now()) === 0) return null;
    const isProbe = this.#breaker.kind === "open";
    this.#setBreaker(callBegun(this.#breaker));
    return { isProbe };
  }

  /** It has ended; `works` as in an attempt. */
  endCall({ isProbe }: { readonly isProbe: boolean }, works: boolean | null): void {
    const { clock, breaker } = this.#options;
    this.#setBreaker(callEnded(this.#breaker, { works, isProbe, nowMs: clock.now() }, breaker));
    this.notice();
  }

  /** Something may be due that was not known. */
  notice(): void {
    this.#isAwake = true;
    this.#wake();
  }

  /** No more tries; those under way may end, up to the drain's time. A second call ends them now. */
  stop(): void {
    if (this.#isStopping) this.#lease?.stopTries();
    else {
      this.#isStopping = true;
      this.#timers.push(this.#options.clock.after(this.#options.drainMs, () => this.#lease?.stopTries()));
    }
    this.notice();
  }

  /** Ends all: nothing more can be written down. */
  fail(error: BatonError): void {
    this.#failed ??= error;
    this.#lease?.lose(error.message);
    this.notice();
  }

  /** Resolves when it was stopped, or is through. Rejects when it cannot go on. */
  async run(): Promise<void> {
    this.#startedMs = this.#options.wallClockMs();
    try {
      while (!this.#isOver()) await this.#underLease();
    } finally {
      for (const cancel of this.#timers) cancel();
    }
    if (this.#failed !== null) throw this.#failed;
  }

  #isOver(): boolean {
    return this.#failed !== null || (this.#isStopping && this.#tries.size === 0);
  }

  async #underLease(): Promise<void> {
    const { clock, store, boot, leaseMs, pid, wallClockMs } = this.#options;
    this.#lease = null;
    clock.noticeSuspend();
    const askedMs = clock.now();
    const owner = await this.#retryWhileBusy(() =>
      store.call("register", boot.id, boot.nowMs() + leaseMs, pid, wallClockMs())
    );
    if (owner === null) return;
    const lease = new ProcessorLease(owner, askedMs, { clock, leaseMs });
    this.#lease = lease;
    const off = onAbort(lease.lost, (reason) => {
      if (this.#failed === null) this.#options.onEvent({ kind: "lost", why: (reason as Error).message });
      this.notice();
    });
    const ending = new AbortController();
    const renewing = this.#renewLease(lease, ending.signal);
    try {
      await this.#work(lease);
    } catch (error) {
      lease.lose("The processor has failed");
      throw error;
    } finally {
      // Under a lease that is renewed up to then.
      await Promise.all(this.#tries);
      ending.abort();
      await renewing;
      off();
      lease.end();
    }
    if (!lease.lost.aborted) await this.#retryWhileBusy(() => store.call("leave", owner));
  }

  async #work(lease: ProcessorLease): Promise<void> {
    for (;;) {
      this.#isAwake = false;
      if (lease.isOver() || this.#isOver()) return;
      const isIdle = this.#isStopping || !(await this.#claimDue(lease));
      if (isIdle && this.#tries.size === 0 && await this.#isFinished()) return void (this.#isStopping = true);
      if (!isIdle || this.#isAwake) continue;
      await this.#waitForWork();
    }
  }

  async #isFinished(): Promise<boolean> {
    const { until, store, order } = this.#options;
    if (this.#isStopping) return true;
    if (until === "stopped") return false;
    // What only has to wait for its turn is still to be tried; what a breaker or a batch keeps back is the next call's.
    if (until === "tried") return !this.#hasMore || this.#pacer.left <= 0 || this.#breaker.kind !== "closed";
    return await this.#retryWhileBusy(() => store.call("canBeTried", order)) === false;
  }

  /** Takes what may be taken; true when there may be more at once. */
  async #claimDue(lease: ProcessorLease): Promise<boolean> {
    const { store, order, wallClockMs, pacing, until, leads } = this.#options;
    this.#pacer = pacerAt(this.#pacer, pacing, wallClockMs());
    if (leads?.() === false) {
      // A time of the schedule was for who led then.
      if (pacing.nextTimeMs !== undefined) this.#pacer = { ...this.#pacer, left: 0 };
      return false;
    }
    const max = this.#allowance();
    if (max === 0) return false;
    // Once: what was due at the start, and not what failed since.
    const nowMs = until === "tried" ? this.#startedMs : wallClockMs();
    const claim = await this.#retryWhileBusy(() => store.call("claim", { owner: lease.owner, max, order, nowMs }));
    if (claim === null) return false;
    const { messages } = claim;
    this.#hasMore = messages.length === max;
    this.#nextMs = claim.nextMs;
    this.#pacer = pacerAfterClaim(this.#pacer, pacing, { count: messages.length, asked: max });
    if (this.#bucket !== null) this.#bucket = { ...this.#bucket, tokens: this.#bucket.tokens - messages.length };
    for (const message of messages) this.#begin(message, lease);
    return messages.length > 0 && (order === "fifo" || messages.length === max);
  }

  #allowance(): number {
    const { rate, clock } = this.#options;
    const nowMs = clock.now();
    let tokens = Infinity;
    if (rate !== null) {
      this.#bucket = filled(this.#bucket ?? fullBucket(nowMs), rate, nowMs);
      tokens = Math.floor(this.#bucket.tokens);
    }
    const left = this.#pacer.left;
    return Math.max(0, Math.min(this.#freeSlots(), tokens, left, callsAllowed(this.#breaker, nowMs), claimsMax));
  }

  /** How many more may be tried at once. */
  #freeSlots(): number {
    const { concurrency, order } = this.#options;
    return (order === "fifo" ? 1 : concurrency) - this.#tries.size;
  }

  #begin(message: ClaimedMessage, lease: ProcessorLease): void {
    const isProbe = this.#breaker.kind === "open";
    this.#setBreaker(callBegun(this.#breaker));
    const attempt = this.#deliver(message, lease, isProbe).finally(() => {
      this.#tries.delete(attempt);
      this.notice();
    });
    this.#tries.add(attempt);
  }

  async #deliver(message: ClaimedMessage, lease: ProcessorLease, isProbe: boolean): Promise<void> {
    await using share: TryLease = lease.forTry(message.id, message.fence);
    let attempt: TryResult;
    try {
      // Between the claim and now there may have been a pause: who has no lease any more begins nothing.
      if (lease.isOver()) attempt = { kind: "lost" };
      else {
        this.#options.onEvent({ kind: "began", message });
        attempt = await this.#options.target.deliver(message, share);
      }
    } catch (error) {
      // A bug in a target must not leave the message to nobody: it counts as a crash when the lease is over.
      return this.fail(
        error instanceof BatonError ? error : new BatonError("INTERNAL", String(error), { cause: error }),
      );
    }
    const works = attempt.kind === "tried" ? attempt.isHealthy : null;
    const nowMs = this.#options.clock.now();
    this.#setBreaker(callEnded(this.#breaker, { works, isProbe, nowMs }, this.#options.breaker));
    if (attempt.kind === "lost") return;
    if (attempt.kind === "breach") return this.fail(attempt.error);
    await this.#record(message, lease, attempt);
    if (attempt.kind === "not_begun" && attempt.error !== undefined) {
      this.#failed ??= attempt.error;
      lease.stopTries();
    }
  }

  async #record(
    message: ClaimedMessage,
    { owner, lost }: ProcessorLease,
    attempt: Extract<TryResult, { kind: "tried" | "not_begun" }>,
  ): Promise<void> {
    const { store, wallClockMs, onEvent } = this.#options;
    const { seq, fence } = message;
    const isTried = attempt.kind === "tried";
    const error = isTried ? attempt.error : null;
    const end = isTried ? attempt.end : null;
    const finish = () => store.call("finish", { seq, fence, owner, end, error, nowMs: wallClockMs() });
    const life = await this.#retryWhileBusy(finish, lost);
    if (life === null) return onEvent({ kind: "stale", message });
    if (attempt.kind === "tried") onEvent({ kind: "ended", message, life, error });
    else onEvent({ kind: "given_back", message, why: attempt.why });
  }

  /** Up to when something may be taken, unless something is noticed before. */
  async #waitForWork(): Promise<void> {
    const { clock, wallClockMs, rate, leads } = this.#options;
    const untilWall = (atMs: number | null) => (atMs === null ? Infinity : atMs - wallClockMs());
    const waitMs = nextWakeMs({
      mayClaim: !this.#isStopping && this.#freeSlots() > 0 && leads?.() !== false,
      breakerMs: breakerOpensAtMs(this.#breaker) - clock.now(),
      tokenMs: rate === null || this.#bucket === null ? 0 : tokenAtMs(this.#bucket, rate) - clock.now(),
      batchMs: this.#pacer.left > 0 ? 0 : untilWall(this.#pacer.nextMs),
      dueMs: untilWall(this.#nextMs),
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = clock.after(waitMs, resolve);
    this.#wake = resolve;
    if (this.#isAwake) resolve();
    await promise;
    cancel();
    this.#wake = () => {};
  }

  /** Renews the lease and takes back what others have left, until it is told to end. */
  async #renewLease(lease: ProcessorLease, signal: AbortSignal): Promise<void> {
    const { clock, store, leaseMs } = this.#options;
    const everyMs = Math.min(reclaimEveryMs, leaseMs / 4);
    let renewedMs = clock.now();
    while (!signal.aborted && !lease.lost.aborted) {
      try {
        await this.#reclaim();
        if (clock.now() - renewedMs >= leaseMs / 4) {
          clock.noticeSuspend();
          const askedMs = clock.now();
          const endMs = this.#options.boot.nowMs() + leaseMs;
          if (!await store.call("renew", lease.owner, endMs)) {
            lease.lose("The lease on the messages was given up by another process");
          } else lease.renewed(askedMs);
          renewedMs = askedMs;
        }
      } catch (error) {
        if (!isTemporary(error)) return this.fail(error as BatonError);
        this.#options.onEvent({ kind: "store_busy", why: (error as Error).message });
      }
      await sleep(clock, everyMs, AbortSignal.any([signal, lease.lost])).catch(() => {});
    }
  }

  async #reclaim(): Promise<void> {
    const { store, boot, graceMs, wallClockMs, onEvent } = this.#options;
    const count = await store.call("reclaim", { boot: boot.id, bootMs: boot.nowMs(), graceMs, nowMs: wallClockMs() });
    if (count === 0) return;
    onEvent({ kind: "reclaimed", count });
    this.notice();
  }

  #setBreaker(breaker: Breaker): void {
    const before = this.#breaker.kind;
    this.#breaker = breaker;
    if (before !== breaker.kind) this.#options.onEvent({ kind: "breaker", state: breaker.kind });
  }

  /** What the store has no room or no time for is asked again, as long as there is a lease; null when that is over, or it failed. */
  async #retryWhileBusy<T>(
    ask: () => Promise<T>,
    lost: AbortSignal | undefined = this.#lease?.lost,
  ): Promise<T | null> {
    for (let waitMs = busyRetryMs;; waitMs = Math.min(2 * waitMs, busyRetryMsMax)) {
      try {
        return await ask();
      } catch (error) {
        const { code, message } = error as BatonError;
        if (code === "LOCK_LOST") this.#lease?.lose(message);
        else if (!isTemporary(error)) this.fail(error as BatonError);
        if (!isTemporary(error) || this.#failed !== null) return null;
        this.#options.onEvent({ kind: "store_busy", why: message });
      }
      if (lost?.aborted || this.#isOver()) return null;
      await sleep(this.#options.clock, waitMs, lost).catch(() => {});
    }
  }
}

/** Nothing was done, and the next time it may go well. */
function isTemporary(error: unknown): boolean {
  return error instanceof BatonError && (error.code === "STORE_FULL" || error.code === "LOCK_BUSY");
}

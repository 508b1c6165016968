/**
 * Claims due messages, tries them and records the results. The store decides the next state of a message; pacer and
 * rate limit decide when to claim. Every try is claimed durably before it starts, under the lease
 * of this processor. When the lease is lost, the processor stops all tries, ignores their results and registers again.
 */
import { BatonError } from "../../base/errors.ts";
import { CleanupScope, onAbort } from "../../base/support/abort.ts";
import type { Clock } from "../../base/support/clock.ts";
import { resultInTimeOrNull, sleep } from "../../base/support/deadline.ts";
import type { MessageLife } from "../queue/message_life.ts";
import { ProcessorLease, type TryLease } from "../queue/processor_lease.ts";
import {
  initialRateBucket,
  nextRateTokenAtMs,
  type Rate,
  type RateBucket,
  refilledBucket,
} from "../queue/rate_limit.ts";
import {
  type BatchPacer,
  batchPacerAtTime,
  type BatchPacerOptions,
  pacerAfterClaim,
  startPacer,
} from "./batch_pacer.ts";
import type { RetryOrder, StoreClient } from "../queue/store_methods.ts";
import { claimsMax } from "../queue/retry_store_limits.ts";
import type { ClaimedMessage } from "../queue/stored_message.ts";
import type { Target, TryResult } from "../targets/target.ts";
import { OneTimeEvent } from "../../base/support/event.ts";

export type ProcessorEvent =
  | { readonly kind: "began"; readonly message: ClaimedMessage }
  | {
    readonly kind: "ended";
    readonly message: ClaimedMessage;
    readonly life: MessageLife;
    readonly error: string | null;
  }
  | { readonly kind: "given_back" | "held_back"; readonly message: ClaimedMessage; readonly why: string }
  /** The result of a try that came too late to count. */
  | { readonly kind: "stale"; readonly message: ClaimedMessage }
  | { readonly kind: "reclaimed"; readonly count: number }
  | { readonly kind: "lost" | "store_busy"; readonly why: string };

export interface RetryProcessorOptions {
  readonly store: StoreClient;
  readonly target: Target;
  readonly clock: Clock;
  readonly wallClockMs: () => number;
  /** The ID of the machine's current boot, and the milliseconds since that boot. */
  readonly boot: { readonly id: string; nowMs(): number };
  readonly pid: number;
  readonly leaseMs: number;
  readonly graceMs: number;
  readonly concurrency: number;
  readonly order: RetryOrder;
  readonly rate: Rate | null;
  readonly pacing: BatchPacerOptions;
  /** How long tries may continue after a request to stop, in milliseconds. */
  readonly drainMs: number;
  /** When the run ends. `tried`: when all due messages were tried once. `empty`: when no message waits. */
  readonly until: "stopped" | "tried" | "empty";
  readonly onEvent: (event: ProcessorEvent) => void;
}

/** The time between two checks for expired leases of other processors, in milliseconds. */
const reclaimEveryMs = 1000;
/** The first and the longest pause before another attempt to record a result, in milliseconds. */
const busyRetryMs = 200;
const busyRetryMsMax = 5000;
/** The pause before a message that this processor cannot try may be claimed again, in milliseconds. */
const heldBackMs = 30_000;
/** The number of open messages that one call reads. */
const openPageRows = 1000;

export class RetryProcessor {
  readonly #options: RetryProcessorOptions;
  readonly #tries = new Set<Promise<void>>();
  #lease: ProcessorLease | null = null;
  #bucket: RateBucket | null = null;
  #pacer: BatchPacer;
  #nextDueMs: number | null = null;
  /** True if the last claim returned as many messages as it asked for. */
  #hasMore = true;
  #startedMs: number;
  #isStopping = false;
  #failure: BatonError | null = null;
  #wake: () => void = () => {};
  #isAwake = true;
  readonly #timers = new CleanupScope();
  /** The numbers of the messages that were held back, if the run ends when no other message can be tried. */
  readonly #heldBack = new Set<number>();

  constructor(options: RetryProcessorOptions) {
    this.#options = options;
    this.#startedMs = options.wallClockMs();
    this.#pacer = startPacer(options.pacing, this.#startedMs);
  }

  get inFlight(): number {
    return this.#tries.size;
  }

  /** Looks for due messages soon, because there may be a new one. */
  wakeUp(): void {
    this.#isAwake = true;
    this.#wake();
  }

  /**
   * Prevents further tries. Tries in flight may continue for the drain time; a second call of `stop` stops them
   * immediately.
   */
  stop(): void {
    if (this.#isStopping) this.#lease?.stopTries();
    else {
      this.#isStopping = true;
      this.#timers.add(this.#options.clock.startTimer(this.#options.drainMs, () => this.#lease?.stopTries()));
    }
    this.wakeUp();
  }

  /** Ends the processor with `error`. Results of tries can no longer be recorded. */
  fail(error: BatonError): void {
    this.#failure ??= error;
    this.#lease?.lose(error.message);
    this.wakeUp();
  }

  /** Runs until `stop`, or until the condition `until` is true. Rejects when the processor cannot continue. */
  async run(): Promise<void> {
    this.#startedMs = this.#options.wallClockMs();
    try {
      while (!this.#isOver()) await this.#runUnderLease();
    } finally {
      this.#timers[Symbol.dispose]();
    }
    if (this.#failure !== null) throw this.#failure;
  }

  #isOver(): boolean {
    return this.#failure !== null || (this.#isStopping && this.#tries.size === 0);
  }

  async #runUnderLease(): Promise<void> {
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
      if (this.#failure === null) this.#options.onEvent({ kind: "lost", why: (reason as Error).message });
      this.wakeUp();
    });
    const ending = new AbortController();
    const renewing = this.#renewLease(lease, ending.signal);
    try {
      await this.#claimAndTry(lease);
    } catch (error) {
      lease.lose("The processor has failed");
      throw error;
    } finally {
      // The lease is renewed until the tries have ended.
      await Promise.all(this.#tries);
      ending.abort();
      await renewing;
      off();
      lease.end();
    }
    if (!lease.lost.aborted) await this.#retryWhileBusy(() => store.call("leave", owner));
  }

  async #claimAndTry(lease: ProcessorLease): Promise<void> {
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
    // A message behind another message with the same key must still be tried. Messages that a used-up batch holds back
    // are left to the next run.
    if (until === "tried") return !this.#hasMore || this.#pacer.messagesLeft <= 0;
    if (this.#heldBack.size > 0 && await this.#isAllHeldBack()) return true;
    return await this.#retryWhileBusy(() => store.call("canBeTried", order)) === false;
  }

  /** Returns true if each open message was held back, or waits for such a message. */
  async #isAllHeldBack(): Promise<boolean> {
    const { store, order } = this.#options;
    const keys = new Set<string>();
    for (let afterSeq = 0;;) {
      const page = { afterSeq, max: openPageRows };
      const open = await this.#retryWhileBusy(() => store.call("list", { states: ["waiting", "in_flight"] }, page));
      if (open === null) return false;
      for (const { seq, key } of open) {
        const isHeldBack = this.#heldBack.has(seq);
        if (order === "fifo") return isHeldBack;
        if (!isHeldBack && !(order === "key" && key !== null && keys.has(key))) return false;
        if (key !== null) keys.add(key);
      }
      if (open.length < openPageRows) return true;
      afterSeq = open.at(-1)?.seq ?? afterSeq;
    }
  }

  /** Claims messages and starts their tries. Returns true if more messages may be due now. */
  async #claimDue(lease: ProcessorLease): Promise<boolean> {
    const { store, order, wallClockMs, pacing, until } = this.#options;
    this.#pacer = batchPacerAtTime(this.#pacer, pacing, wallClockMs());
    const max = this.#claimAllowance();
    if (max === 0) return false;
    // A run with --once tries only messages that were due at its start. If the clock was set back, the earlier time
    // counts.
    this.#startedMs = Math.min(this.#startedMs, wallClockMs());
    const nowMs = until === "tried" ? this.#startedMs : wallClockMs();
    // Renews the lease if necessary, because a claim of large messages takes long and delays the next renewal.
    await this.#retryWhileBusy(() => this.#renewIfDue(lease));
    if (lease.isOver()) return false;
    const claim = await this.#retryWhileBusy(() => store.call("claim", { owner: lease.owner, max, order, nowMs }));
    if (claim === null) return false;
    const { messages } = claim;
    this.#hasMore = messages.length === max;
    this.#nextDueMs = claim.nextMs;
    this.#pacer = pacerAfterClaim(this.#pacer, pacing, { count: messages.length, asked: max });
    if (this.#bucket !== null) this.#bucket = { ...this.#bucket, tokens: this.#bucket.tokens - messages.length };
    for (const message of messages) this.#beginTry(message, lease);
    return messages.length > 0 && (order === "fifo" || messages.length === max);
  }

  #claimAllowance(): number {
    const { rate, clock } = this.#options;
    let tokens = Infinity;
    if (rate !== null) {
      const nowMs = clock.now();
      this.#bucket = refilledBucket(this.#bucket ?? initialRateBucket(nowMs), rate, nowMs);
      tokens = Math.floor(this.#bucket.tokens);
    }
    const left = this.#pacer.messagesLeft;
    return Math.max(0, Math.min(this.#freeSlots(), tokens, left, claimsMax));
  }

  #freeSlots(): number {
    const { concurrency, order } = this.#options;
    return (order === "fifo" ? 1 : concurrency) - this.#tries.size;
  }

  #beginTry(message: ClaimedMessage, lease: ProcessorLease): void {
    const running = this.#deliver(message, lease).finally(() => {
      this.#tries.delete(running);
      this.wakeUp();
    });
    this.#tries.add(running);
  }

  async #deliver(message: ClaimedMessage, lease: ProcessorLease): Promise<void> {
    await using share: TryLease = lease.makeTryLease(message.id, message.fence);
    let result: TryResult;
    try {
      // The process may have been suspended since the claim. If the lease has ended, no try may start.
      if (lease.isOver()) result = { kind: "lost" };
      else {
        this.#options.onEvent({ kind: "began", message });
        result = await this.#options.target.deliver(message, share);
      }
    } catch (error) {
      // An error here is a bug in the target. The message counts as crashed when the lease ends.
      return this.fail(toBatonError(error));
    }
    if (result.kind === "lost") return;
    if (result.kind === "breach") return this.fail(result.error);
    await this.#recordResult(message, lease, result);
    if (result.kind === "not_begun" && result.error !== undefined) {
      this.#failure ??= result.error;
      lease.stopTries();
    }
  }

  async #recordResult(
    message: ClaimedMessage,
    { owner, lost }: ProcessorLease,
    result: Extract<TryResult, { kind: "tried" | "not_begun" | "held_back" }>,
  ): Promise<void> {
    const { store, wallClockMs, onEvent, until } = this.#options;
    const { seq, fence } = message;
    const isHeldBack = result.kind === "held_back";
    const pauseMs = isHeldBack ? heldBackMs : 0;
    if (isHeldBack && until === "empty") this.#heldBack.add(seq);
    const isTried = result.kind === "tried";
    const error = isTried ? result.error : null;
    const end = isTried ? result.end : null;
    const finish = () => store.call("finish", { seq, fence, owner, end, error, nowMs: wallClockMs(), pauseMs });
    const life = await this.#retryWhileBusy(finish, lost);
    if (life === null) return onEvent({ kind: "stale", message });
    if (result.kind === "tried") onEvent({ kind: "ended", message, life, error });
    else onEvent({ kind: isHeldBack ? "held_back" : "given_back", message, why: result.why });
  }

  /** Waits until a message may be claimed, or until `wakeUp`. */
  async #waitForWork(): Promise<void> {
    const { clock, wallClockMs, rate } = this.#options;
    const untilWall = (atMs: number | null) => (atMs === null ? Infinity : atMs - wallClockMs());
    const waitMs = nextWakeMs({
      mayClaim: !this.#isStopping && this.#freeSlots() > 0,
      tokenMs: rate === null || this.#bucket === null ? 0 : nextRateTokenAtMs(this.#bucket, rate) - clock.now(),
      batchMs: this.#pacer.messagesLeft > 0 ? 0 : untilWall(this.#pacer.nextMs),
      dueMs: untilWall(this.#nextDueMs),
    });
    const wake = new OneTimeEvent();
    this.#wake = wake.set;
    if (this.#isAwake) wake.set();
    await resultInTimeOrNull(clock, waitMs, wake.wait());
    this.#wake = () => {};
  }

  /** Renews the lease and takes back messages of expired leases until the signal. */
  async #renewLease(lease: ProcessorLease, signal: AbortSignal): Promise<void> {
    const { clock, leaseMs } = this.#options;
    const everyMs = Math.min(reclaimEveryMs, leaseMs / 4);
    while (!signal.aborted && !lease.lost.aborted) {
      try {
        await this.#reclaim();
        if (lease.isOver()) break;
        await this.#renewIfDue(lease);
      } catch (error) {
        if (!this.#isTemporary(error)) return this.fail(error as BatonError);
        this.#options.onEvent({ kind: "store_busy", why: (error as Error).message });
      }
      await sleep(clock, everyMs, AbortSignal.any([signal, lease.lost])).catch(() => {});
    }
  }

  async #renewIfDue(lease: ProcessorLease): Promise<void> {
    const { clock, store, boot, leaseMs } = this.#options;
    const askedMs = clock.now();
    if (lease.isOver() || askedMs - lease.renewedMs < leaseMs / 4) return;
    const endMs = boot.nowMs() + leaseMs;
    if (await store.call("renew", lease.owner, endMs)) lease.extend(askedMs);
    else lease.lose("Another process took the lease on the messages");
  }

  async #reclaim(): Promise<void> {
    const { store, boot, graceMs, wallClockMs, onEvent } = this.#options;
    const count = await store.call("reclaim", { boot: boot.id, bootMs: boot.nowMs(), graceMs, nowMs: wallClockMs() });
    if (count === 0) return;
    onEvent({ kind: "reclaimed", count });
    this.wakeUp();
  }

  /**
   * Returns true if the same call may succeed later, and may be repeated (postgres_retry_store.ts). A service waits for
   * a database that cannot be reached. A run that ends by itself reports the error, because the next run may be waiting
   * for its end.
   */
  #isTemporary(error: unknown): boolean {
    if (!(error instanceof BatonError)) return false;
    const { code } = error;
    if (code === "UNREACHABLE") return this.#options.until === "stopped";
    return code === "STORE_FULL" || code === "LOCK_BUSY" || code === "OUTCOME_UNKNOWN";
  }

  /** Repeats a call while the store is full or busy. Returns null if the lease has ended or the store has failed. */
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
        else if (!this.#isTemporary(error)) this.fail(error as BatonError);
        if (!this.#isTemporary(error) || this.#failure !== null) return null;
        this.#options.onEvent({ kind: "store_busy", why: message });
      }
      if (lost?.aborted || this.#isOver()) return null;
      await sleep(this.#options.clock, waitMs, lost).catch(() => {});
    }
  }
}

export function toBatonError(error: unknown): BatonError {
  return error instanceof BatonError ? error : new BatonError("INTERNAL", String(error), { cause: error });
}

/**
 * The longest wait in milliseconds. Waits are limited because the wall clock may be set, and another process may notify
 * this one late.
 */
const wakeMsMax = 1000;

interface WakeFacts {
  /** True if there is a free slot for a try. When a slot becomes free, the processor is woken. */
  readonly mayClaim: boolean;
  /** The time until rate limit and batch allow a claim, in milliseconds; 0 or less means now. */
  readonly tokenMs: number;
  readonly batchMs: number;
  /** The time until the next message is due, in milliseconds; Infinity if no such message is known. */
  readonly dueMs: number;
}

export function nextWakeMs({ mayClaim, tokenMs, batchMs, dueMs }: WakeFacts): number {
  if (!mayClaim) return wakeMsMax;
  // The due time counts only when nothing else prevents a claim.
  const obstacleMs = Math.max(tokenMs, batchMs);
  return Math.max(0, Math.min(wakeMsMax, obstacleMs > 0 ? Math.max(obstacleMs, 1) : dueMs));
}

/**
 * Sends dead letters from the store to a sink. A dead letter leaves the store only when it is durable in the sink: the
 * store records that it is being sent and to which offset, the sink writes it, then the store marks it as forwarded.
 * After a crash in between, the sink looks whether the dead letter arrived. One process of a store does this at a time.
 */
import { BatonError, type ErrorCode, errorMessage } from "../../base/errors.ts";
import { onAbort, TaskScope } from "../../base/support/abort.ts";
import { backoffMs, serverBackoff } from "../../base/support/backoff.ts";
import type { Clock } from "../../base/support/clock.ts";
import { deadlineAfter, sleep } from "../../base/support/deadline.ts";
import type { PendingDeadLetter, StoreClient } from "../queue/store_methods.ts";
import type { ClaimedMessage } from "../queue/stored_message.ts";

export interface DeadLetterSink {
  /**
   * True: others are sent before a dead letter that fails. False: it must be repaired first, as it may be half written.
   */
  readonly skipsFailed: boolean;
  /**
   * Prepares for some dead letters; null: another process is sending. Rejects when the sink cannot be reached. Here and
   * below, a rejection with one of `sinkErrorCodes` concerns the sink, one with BAD_DATA a single dead letter.
   */
  open(signal: AbortSignal): Promise<OpenSink | null>;
  /** Called after the last dead letter. */
  close?(): void;
}

export interface OpenSink {
  /**
   * The offset of the dead letter that is sent next. `send` understands it later, even after a crash. Null: the sink
   * recognizes a dead letter that is sent twice by its id, so that nothing has to be recorded before.
   */
  nextOffset(): number | null;
  /**
   * Resolves when the dead letter is durable. `offset`: as `nextOffset` gave it to this process or to one that died
   * since.
   */
  send(letter: ClaimedMessage, offset: number | null, signal: AbortSignal): Promise<void>;
  close(): void;
}

export interface DeadLetterForwarderOptions {
  readonly store: StoreClient;
  readonly sink: DeadLetterSink;
  readonly clock: Clock;
  readonly wallClockMs: () => number;
  /**
   * Milliseconds, for a run that ends by itself: how long opening the sink may take, and how long dead letters that the
   * sink does not accept are retried at the end.
   */
  readonly openTimeoutMs?: number;
  readonly onForwarded: (letter: ClaimedMessage) => void;
  /** The dead letter stays in the store and is retried; null: all of them. */
  readonly onFailure: (why: string, letter: ClaimedMessage | null) => void;
}

/** Milliseconds between two checks for dead letters, and at most after a failure. */
const pollMs = 1000;
const failureDelayMsMax = 60_000;
const batchSize = 16;
/** Time for sending after a stop was requested, in milliseconds. */
const finalSendMs = 10_000;

/** Errors that concern the sink, not the dead letter that was being sent. */
const sinkErrorCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "UNREACHABLE",
  "REFUSED",
  "CONFIG",
  "STORE_FULL",
  "LOCK_BUSY",
  "FENCED",
  "NOT_SUBSCRIBED",
]);

export class DeadLetterForwarder {
  readonly #options: DeadLetterForwarderOptions;
  #wake: () => void = () => {};

  constructor(options: DeadLetterForwarderOptions) {
    this.#options = options;
  }

  /** Reports that there may be a new dead letter. */
  wakeUp(): void {
    this.#wake();
  }

  /**
   * Sends until the signal; then once more what is left, as far as the first try gets, or within `openTimeoutMs`; with
   * `hurry` within 10 s. With `now` sending stops immediately.
   */
  async run(signal: AbortSignal, hurry?: AbortSignal, now?: AbortSignal): Promise<void> {
    const { clock, sink, store } = this.#options;
    const ending = new AbortController();
    const end = (reason: unknown) => ending.abort(reason);
    using limits = new TaskScope(onAbort(now, end));
    const limitRest = (reason: unknown) => limits.add(clock.startTimer(finalSendMs, () => end(reason)));
    limits.add(onAbort(signal, () => limits.add(onAbort(hurry, limitRest))));
    let waitMs = pollMs;
    let failedSinceMs = -Infinity;
    try {
      // If the store is full or busy now, the delays only stay in force a little longer.
      await store.call("clearForwardDelays").catch(() => {});
      while (!signal.aborted) {
        const startMs = clock.now();
        const isWell = await this.#sendAll(ending.signal) !== "failed";
        failedSinceMs = isWell ? -Infinity : startMs;
        waitMs = isWell ? pollMs : Math.min(2 * waitMs, failureDelayMsMax);
        const woken = new AbortController();
        // The delay after a failure is not cut short: otherwise every message that dies would try the sink again.
        if (waitMs === pollMs) this.#wake = () => woken.abort();
        await sleep(clock, waitMs, AbortSignal.any([signal, woken.signal])).catch(() => {});
        this.#wake = () => {};
      }
      await this.#sendLast(failedSinceMs, ending.signal);
    } finally {
      sink.close?.();
    }
  }

  /** Sends what is left at the end. `failedSinceMs`: since when the sink accepts nothing. */
  async #sendLast(failedSinceMs: number, signal: AbortSignal): Promise<void> {
    const { clock, openTimeoutMs = 0 } = this.#options;
    const nowMs = clock.now();
    // A sink that did not respond for `openTimeoutMs` just now is not given that time again.
    const isRecent = nowMs - failedSinceMs < 2 * openTimeoutMs;
    const endMs = (isRecent ? failedSinceMs : nowMs) + openTimeoutMs;
    if (isRecent && nowMs >= endMs) return;
    for (let attempt = 0;; attempt++) {
      if (await this.#sendAll(signal) === "sent" || signal.aborted) return;
      const leftMs = endMs - clock.now();
      if (leftMs <= 0) return;
      await sleep(clock, Math.min(leftMs, backoffMs(attempt, serverBackoff)), signal).catch(() => {});
    }
  }

  /** `sent`: everything except dead letters that failed by themselves; `busy`: another process is sending. */
  async #sendAll(signal: AbortSignal): Promise<"sent" | "busy" | "failed"> {
    const { store, wallClockMs } = this.#options;
    try {
      while (!signal.aborted) {
        let letters = await store.call("pendingDeadLetters", 1, wallClockMs());
        if (letters.length === 0) return "sent";
        const open = await this.#open(signal);
        if (open === null) return "busy";
        try {
          // Read again: another process may have sent the first one meanwhile.
          letters = await store.call("pendingDeadLetters", batchSize, wallClockMs());
          for (const letter of letters) {
            if (!await this.#trySend(letter, open, signal)) return "failed";
            if (signal.aborted) break;
          }
        } finally {
          open.close();
        }
      }
      return "sent";
    } catch (error) {
      if (!signal.aborted) await this.#reportFailure(null, error);
      return "failed";
    }
  }

  async #open(signal: AbortSignal): Promise<OpenSink | null> {
    const { sink, clock, openTimeoutMs } = this.#options;
    if (openTimeoutMs === undefined) return await sink.open(signal);
    const reason = () => new BatonError("UNREACHABLE", `no response from --dead-letter within ${openTimeoutMs} ms`);
    using deadline = deadlineAfter(clock, openTimeoutMs, { signal, reason });
    return await sink.open(deadline.signal);
  }

  /**
   * False: other dead letters would probably fail as well. Rejects with errors that do not concern this dead letter.
   */
  async #trySend(letter: PendingDeadLetter, open: OpenSink, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#send(letter, open, signal);
      return true;
    } catch (error) {
      const { skipsFailed } = this.#options.sink;
      if (signal.aborted || !skipsFailed || !(error instanceof BatonError) || sinkErrorCodes.has(error.code)) {
        throw error;
      }
      await this.#reportFailure(letter, error);
      return error.code === "BAD_DATA";
    }
  }

  async #send(letter: PendingDeadLetter, open: OpenSink, signal: AbortSignal): Promise<void> {
    const { store, wallClockMs, onForwarded } = this.#options;
    const startedAt = letter.forwardState === "sending" ? letter.forwardOffset : null;
    const offset = startedAt ?? open.nextOffset();
    if (startedAt === null && offset !== null) await store.call("markForwarding", letter.seq, offset);
    await open.send(letter, offset, signal);
    await store.call("markForwarded", letter.seq, wallClockMs(), offset !== null);
    onForwarded(letter);
  }

  /** A failure of one dead letter, which is delayed; null: of all of them. */
  async #reportFailure(letter: PendingDeadLetter | null, error: unknown): Promise<void> {
    const { store, wallClockMs, onFailure } = this.#options;
    if (!(error instanceof BatonError)) throw error;
    const why = errorMessage(error);
    onFailure(why, letter);
    // Shown by show and stats. If the store cannot record it, the processor reports that error.
    await store.call("recordForwardFailure", letter?.seq ?? null, why, wallClockMs()).catch(() => {});
  }
}

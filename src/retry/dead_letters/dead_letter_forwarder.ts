/**
 * Sends dead letters from the store to a sink. First the store records that a dead letter is being sent, and to which
 * offset. Then the sink writes the dead letter durably, and the store marks it as forwarded. After a crash between
 * these steps, the sink checks whether the dead letter has arrived. Only one process of a store sends at a time.
 */
import { BatonError, type ErrorCode, errorMessage } from "../../base/errors.ts";
import { CleanupScope, onAbort } from "../../base/support/abort.ts";
import { backoffMs, serverBackoff } from "../../base/support/backoff.ts";
import type { Clock } from "../../base/support/clock.ts";
import { deadlineAfter, sleep } from "../../base/support/deadline.ts";
import type { PendingDeadLetter, StoreClient } from "../queue/store_methods.ts";
import type { ClaimedMessage } from "../queue/stored_message.ts";

export interface DeadLetterSink {
  /**
   * True if the forwarder may continue with other dead letters after one has failed. If false, the failed dead letter
   * must be sent first, because a part of it may be written.
   */
  readonly skipsFailed: boolean;
  /**
   * Opens the sink. Returns null if another process is sending. Rejects if the sink cannot be reached. If `open` or
   * `send` rejects with one of `sinkErrorCodes`, the error is about the sink; BAD_DATA is about one dead letter.
   */
  open(signal: AbortSignal): Promise<DeadLetterSinkSession | null>;
  /** Called after the last dead letter. */
  close?(): void;
}

export interface DeadLetterSinkSession {
  /**
   * The offset of the next dead letter. Null if no offset must be recorded, because the sink recognizes a repeated dead
   * letter by its ID.
   */
  nextOffset(): number | null;
  /**
   * Resolves when the dead letter is durable. `offset` is a result of `nextOffset`, perhaps from a process that died.
   */
  send(letter: ClaimedMessage, offset: number | null, signal: AbortSignal): Promise<void>;
  close(): void;
}

export interface DeadLetterForwarderOptions {
  readonly store: StoreClient;
  readonly sink: DeadLetterSink;
  readonly clock: Clock;
  readonly wallClockMs: () => number;
  /** The time for opening the sink, in milliseconds. It also limits retries at the end of a run that ends by itself. */
  readonly openTimeoutMs?: number;
  /** Called after a delivery. `isRecorded` is false if the dead letter was purged or redriven during the delivery. */
  readonly onForwarded: (letter: ClaimedMessage, isRecorded: boolean) => void;
  /**
   * Called when one dead letter has failed; if `letter` is null, when all have failed. Failed dead letters are tried
   * again.
   */
  readonly onFailure: (why: string, letter: ClaimedMessage | null) => void;
}

/** The time between two checks for dead letters, in milliseconds. */
const pollMs = 1000;
const failureDelayMsMax = 60_000;
const batchSize = 16;
/** The time for sending after a stop was requested, in milliseconds. */
const finalSendMs = 10_000;

/** The codes of errors that are about the sink, not about the dead letter that was being sent. */
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

  /** Starts the next check for dead letters immediately. */
  wakeUp(): void {
    this.#wake();
  }

  /**
   * Sends dead letters until `signal` aborts, and then tries the remaining ones once, or for `openTimeoutMs`. After
   * `hurry` aborts, this rest takes at most 10 s. `now` stops sending immediately.
   */
  async run(signal: AbortSignal, hurry?: AbortSignal, now?: AbortSignal): Promise<void> {
    const { clock, sink, store } = this.#options;
    const ending = new AbortController();
    const end = (reason: unknown) => ending.abort(reason);
    using limits = new CleanupScope(onAbort(now, end));
    const limitRest = (reason: unknown) => limits.add(clock.startTimer(finalSendMs, () => end(reason)));
    limits.add(onAbort(signal, () => limits.add(onAbort(hurry, limitRest))));
    let waitMs = pollMs;
    let failedSinceMs = -Infinity;
    try {
      // Ignores an error: if the store is full or busy now, the delays only stay in force a little longer.
      await store.call("clearForwardDelays").catch(() => {});
      while (!signal.aborted) {
        const startMs = clock.now();
        const isWell = await this.#sendAll(ending.signal) !== "failed";
        failedSinceMs = isWell ? -Infinity : startMs;
        waitMs = isWell ? pollMs : Math.min(2 * waitMs, failureDelayMsMax);
        const woken = new AbortController();
        // Does not shorten the delay after a failure: otherwise every new dead letter would try the sink again.
        if (waitMs === pollMs) this.#wake = () => woken.abort();
        await sleep(clock, waitMs, AbortSignal.any([signal, woken.signal])).catch(() => {});
        this.#wake = () => {};
      }
      await this.#sendLast(failedSinceMs, ending.signal);
    } finally {
      sink.close?.();
    }
  }

  /**
   * Sends the remaining dead letters at the end. `failedSinceMs` is the time since which the sink has accepted nothing.
   */
  async #sendLast(failedSinceMs: number, signal: AbortSignal): Promise<void> {
    const { clock, openTimeoutMs = 0 } = this.#options;
    const nowMs = clock.now();
    // A sink that has just failed to respond for `openTimeoutMs` does not get that time again.
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

  /**
   * Sends all pending dead letters. `sent` means all, except dead letters that failed by themselves; `busy` means that
   * another process is sending.
   */
  async #sendAll(signal: AbortSignal): Promise<"sent" | "busy" | "failed"> {
    const { store, wallClockMs } = this.#options;
    try {
      while (!signal.aborted) {
        let letters = await store.call("pendingDeadLetters", 1, wallClockMs());
        if (letters.length === 0) return "sent";
        const open = await this.#open(signal);
        if (open === null) return "busy";
        try {
          // Reads again, because another process may have sent the first dead letter in the meantime.
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

  async #open(signal: AbortSignal): Promise<DeadLetterSinkSession | null> {
    const { sink, clock, openTimeoutMs } = this.#options;
    if (openTimeoutMs === undefined) return await sink.open(signal);
    const reason = () => new BatonError("UNREACHABLE", `no response from --dead-letter within ${openTimeoutMs} ms`);
    using deadline = deadlineAfter(clock, openTimeoutMs, { signal, reason });
    return await sink.open(deadline.signal);
  }

  /**
   * Forwards one dead letter. Returns true if the forwarder can try the next one; false if the sink would probably
   * refuse that one, too. Rejects if the error has another cause than the delivery, such as the store.
   */
  async #trySend(letter: PendingDeadLetter, open: DeadLetterSinkSession, signal: AbortSignal): Promise<boolean> {
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

  async #send(letter: PendingDeadLetter, open: DeadLetterSinkSession, signal: AbortSignal): Promise<void> {
    const { store, wallClockMs, onForwarded } = this.#options;
    const startedAt = letter.forwardState === "sending" ? letter.forwardOffset : null;
    const offset = startedAt ?? open.nextOffset();
    // The dead letter may have been purged or redriven since it was read, while others were sent.
    if (!await store.call("markForwarding", letter.seq, letter.fence, offset)) return;
    await open.send(letter, offset, signal);
    onForwarded(letter, await store.call("markForwarded", letter.seq, letter.fence, wallClockMs()));
  }

  /**
   * Records a failure. If `letter` is null, all dead letters have failed; otherwise only this one, which is then
   * delayed.
   */
  async #reportFailure(letter: PendingDeadLetter | null, error: unknown): Promise<void> {
    const { store, wallClockMs, onFailure } = this.#options;
    if (!(error instanceof BatonError)) throw error;
    const why = errorMessage(error);
    onFailure(why, letter);
    // Ignores an error: `show` and `stats` would show the failure, and if the store cannot record it, the processor
    // reports the store's error.
    await store.call("recordForwardFailure", letter?.seq ?? null, why, wallClockMs()).catch(() => {});
  }
}

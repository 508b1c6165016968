/**
 * Sends dead letters on to another place. A letter leaves the store only when it is durable there: the store notes that it is
 * about to go and where, then it goes, then the store lets go of it. After a crash in between the place is asked whether it came.
 * One process of a store does this at a time.
 */
import { BatonError, type ErrorCode, messageOf } from "../../errors.ts";
import { onAbort } from "../../support/abort.ts";
import { backoffMs } from "../../support/backoff.ts";
import type { Clock } from "../../support/clock.ts";
import { deadlineAfter, sleep } from "../../support/deadline.ts";
import type { AskStore } from "../queue/store_methods.ts";
import type { OwedLetter } from "../queue/dead_letter_index.ts";
import type { ClaimedMessage } from "../queue/stored_message.ts";

export interface LetterPlace {
  /** A letter that cannot be sent lets others go before it. False: what one of them has left behind is mended first. */
  readonly isEachAlone: boolean;
  /**
   * Gets ready for some letters; null: another process is at it. Rejects when the place cannot be reached; a rejection of one of
   * `placeCodes`, here and below, is not about one letter, BAD_DATA is about nothing but one.
   */
  open(signal: AbortSignal): Promise<OpenPlace | null>;
  /** No more letters. */
  close?(): void;
}

export interface OpenPlace {
  /**
   * Where a letter will be that is sent next; a number that `send` understands later, after a crash too. Null: a letter that comes a
   * second time is known there, by its id, and nothing has to be noted before it goes.
   */
  next(): number | null;
  /** Resolves when it is there, durably. `at`: what `next` said, of this process or of one that died since. */
  send(letter: ClaimedMessage, at: number | null, signal: AbortSignal): Promise<void>;
  close(): void;
}

export interface LetterOfficeOptions {
  readonly store: AskStore;
  readonly place: LetterPlace;
  readonly clock: Clock;
  readonly wallClockMs: () => number;
  /**
   * For a run that ends by itself: how long the place may take to be ready, and how long at the end letters are tried again that it
   * does not take. Milliseconds.
   */
  readonly openMs?: number;
  readonly onSent: (letter: ClaimedMessage) => void;
  /** The letter stays in the store, and is tried again; null: all of them. */
  readonly onTrouble: (why: string, letter: ClaimedMessage | null) => void;
}

/** Between two looks for letters, and after trouble, in milliseconds. */
const lookEveryMs = 1000;
const troubleMsMax = 60_000;
const lettersAtOnce = 16;
/** Between two tries at the end of a run that ends by itself. */
const lastBackoff = { firstMs: 500, maxMs: 1000 };
/** What may still be sent when the end was asked for, in milliseconds. */
const lastMs = 10_000;

/** What was in the way was not about the letter that met it. */
const placeCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "UNREACHABLE",
  "REFUSED",
  "CONFIG",
  "STORE_FULL",
  "LOCK_BUSY",
  "FENCED",
  "NOT_SUBSCRIBED",
]);

export class LetterOffice {
  readonly #options: LetterOfficeOptions;
  #wake: () => void = () => {};

  constructor(options: LetterOfficeOptions) {
    this.#options = options;
  }

  /** There may be a letter. */
  notice(): void {
    this.#wake();
  }

  /**
   * Sends until the signal; then once more what there is, as far as it goes at the first try, or within `openMs`; with `hurry` within
   * 10 s. With `now` what is under way is given up at once.
   */
  async run(signal: AbortSignal, hurry?: AbortSignal, now?: AbortSignal): Promise<void> {
    const { clock, place, store } = this.#options;
    const ending = new AbortController();
    let cancel = () => {};
    let offHurry = () => {};
    const offNow = onAbort(now, (reason) => ending.abort(reason));
    const offEnd = onAbort(signal, () => {
      offHurry = onAbort(hurry, (reason) => void (cancel = clock.after(lastMs, () => ending.abort(reason))));
    });
    let waitMs = lookEveryMs;
    let troubleMs = -Infinity;
    try {
      // A store that has no time or room for it keeps them resting a while.
      await store.call("wakeLetters").catch(() => {});
      while (!signal.aborted) {
        const startMs = clock.now();
        const isWell = await this.#sendAll(ending.signal) !== "trouble";
        troubleMs = isWell ? -Infinity : startMs;
        waitMs = isWell ? lookEveryMs : Math.min(2 * waitMs, troubleMsMax);
        const woken = new AbortController();
        // Trouble is not woken from: every message that dies would try the place again.
        if (waitMs === lookEveryMs) this.#wake = () => woken.abort();
        await sleep(clock, waitMs, AbortSignal.any([signal, woken.signal])).catch(() => {});
        this.#wake = () => {};
      }
      await this.#sendLast(troubleMs, ending.signal);
    } finally {
      offEnd();
      offNow();
      offHurry();
      cancel();
      place.close?.();
    }
  }

  /** At the end. `troubleMs`: since when the place takes none. */
  async #sendLast(troubleMs: number, signal: AbortSignal): Promise<void> {
    const { clock, openMs = 0 } = this.#options;
    const nowMs = clock.now();
    // A place that was silent for `openMs` just now is not waited for once more.
    const isRecent = nowMs - troubleMs < 2 * openMs;
    const endMs = (isRecent ? troubleMs : nowMs) + openMs;
    if (isRecent && nowMs >= endMs) return;
    for (let attempt = 0;; attempt++) {
      if (await this.#sendAll(signal) === "sent" || signal.aborted) return;
      const leftMs = endMs - clock.now();
      if (leftMs <= 0) return;
      const waitMs = Math.max(lastBackoff.firstMs / 4, backoffMs(attempt, lastBackoff));
      await sleep(clock, Math.min(leftMs, waitMs), signal).catch(() => {});
    }
  }

  /** `sent`: what there was, but for letters that are refused by themselves; `taken`: another process is at it. */
  async #sendAll(signal: AbortSignal): Promise<"sent" | "taken" | "trouble"> {
    const { store, wallClockMs } = this.#options;
    try {
      while (!signal.aborted) {
        let letters = await store.call("owedLetters", 1, wallClockMs());
        if (letters.length === 0) return "sent";
        const open = await this.#open(signal);
        if (open === null) return "taken";
        try {
          // As of now: another process may have sent the first one meanwhile.
          letters = await store.call("owedLetters", lettersAtOnce, wallClockMs());
          for (const letter of letters) {
            if (!await this.#sendOrRest(letter, open, signal)) return "trouble";
            if (signal.aborted) break;
          }
        } finally {
          open.close();
        }
      }
      return "sent";
    } catch (error) {
      if (!signal.aborted) await this.#trouble(null, error);
      return "trouble";
    }
  }

  async #open(signal: AbortSignal): Promise<OpenPlace | null> {
    const { place, clock, openMs } = this.#options;
    if (openMs === undefined) return await place.open(signal);
    const late = () => new BatonError("UNREACHABLE", `Nobody who takes dead letters has answered within ${openMs} ms`);
    const deadline = deadlineAfter(clock, openMs, { signal, reason: late });
    try {
      return await place.open(deadline.signal);
    } finally {
      deadline.cancel();
    }
  }

  /** False: others would hardly fare better. Rejects with what is not about this letter. */
  async #sendOrRest(letter: OwedLetter, open: OpenPlace, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#send(letter, open, signal);
      return true;
    } catch (error) {
      const { isEachAlone } = this.#options.place;
      if (signal.aborted || !isEachAlone || !(error instanceof BatonError) || placeCodes.has(error.code)) throw error;
      await this.#trouble(letter, error);
      return error.code === "BAD_DATA";
    }
  }

  async #send(letter: OwedLetter, open: OpenPlace, signal: AbortSignal): Promise<void> {
    const { store, wallClockMs, onSent } = this.#options;
    const begunAt = letter.letter === "begun" ? letter.letterAt : null;
    const at = begunAt ?? open.next();
    if (begunAt === null && at !== null) await store.call("letterBegun", letter.seq, at);
    await open.send(letter, at, signal);
    await store.call("letterThere", letter.seq, wallClockMs(), at !== null);
    onSent(letter);
  }

  /** Of one letter, which rests; null: of all of them. */
  async #trouble(letter: OwedLetter | null, error: unknown): Promise<void> {
    const { store, wallClockMs, onTrouble } = this.#options;
    if (!(error instanceof BatonError)) throw error;
    const why = messageOf(error);
    onTrouble(why, letter);
    // For show and stats. A store that cannot write it down has trouble of its own, which the processor tells.
    await store.call("letterTrouble", letter?.seq ?? null, why, wallClockMs()).catch(() => {});
  }
}

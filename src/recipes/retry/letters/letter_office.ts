/**
 * Sends dead letters on to another place. A letter leaves the store only when it is durable there: the store notes that it is
 * about to go and where, then it goes, then the store lets go of it. After a crash in between the place is asked whether it came.
 * One process of a store does this at a time.
 */
import { BatonError, messageOf } from "../../../errors.ts";
import type { Clock } from "../../../support/clock.ts";
import { sleep } from "../../../support/deadline.ts";
import type { AskStore } from "../processor.ts";
import type { ClaimedMessage } from "../store/stored_message.ts";

export interface LetterPlace {
  /** Gets ready for some letters; null: another process is at it. Rejects when the place cannot be reached. */
  open(): Promise<OpenPlace | null>;
}

export interface OpenPlace {
  /** Where a letter will be that is sent next; a number that `send` understands later, after a crash too. */
  next(): number;
  /** Resolves when it is there, durably. `at`: what `next` said, of this process or of one that died since. */
  send(letter: ClaimedMessage, at: number): Promise<void>;
  close(): void;
}

export interface LetterOfficeOptions {
  readonly store: AskStore;
  readonly place: LetterPlace;
  readonly clock: Clock;
  readonly wallClockMs: () => number;
  readonly onSent: (letter: ClaimedMessage) => void;
  /** The letters stay in the store, and are tried again. */
  readonly onTrouble: (why: string) => void;
}

/** Between two looks for letters, and after trouble, in milliseconds. */
const lookEveryMs = 1000;
const troubleMsMax = 60_000;
const lettersAtOnce = 16;

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

  /** Sends until the signal; then once more what there is, as far as it goes at the first try. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    let waitMs = lookEveryMs;
    while (!signal.aborted) {
      waitMs = await this.#sendAll() ? lookEveryMs : Math.min(2 * waitMs, troubleMsMax);
      const woken = new AbortController();
      // Trouble is not woken from: every message that dies would try the place again.
      if (waitMs === lookEveryMs) this.#wake = () => woken.abort();
      await sleep(clock, waitMs, AbortSignal.any([signal, woken.signal])).catch(() => {});
      this.#wake = () => {};
    }
    await this.#sendAll();
  }

  /** True when nothing was in the way. */
  async #sendAll(): Promise<boolean> {
    const { store, place, onTrouble } = this.#options;
    try {
      for (;;) {
        let letters = await store.call("owedLetters", 1);
        if (letters.length === 0) return true;
        const open = await place.open();
        if (open === null) return true;
        try {
          // As of now: another process may have sent the first one meanwhile.
          letters = await store.call("owedLetters", lettersAtOnce);
          for (const letter of letters) await this.#send(letter, open);
        } finally {
          open.close();
        }
      }
    } catch (error) {
      if (!(error instanceof BatonError)) throw error;
      onTrouble(messageOf(error));
      return false;
    }
  }

  async #send(letter: ClaimedMessage & { readonly letterAt: number | null }, open: OpenPlace): Promise<void> {
    const { store, wallClockMs, onSent } = this.#options;
    const isBegun = letter.letter === "begun" && letter.letterAt !== null;
    const at = isBegun ? letter.letterAt ?? 0 : open.next();
    if (!isBegun) await store.call("letterBegun", letter.seq, at);
    await open.send(letter, at);
    await store.call("letterThere", letter.seq, wallClockMs());
    onSent(letter);
  }
}

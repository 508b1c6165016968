/** How far a put of many messages is: how many, how fast, and how long it will still take; on a terminal only. */
import { WaitLine } from "../../src/cli/wait_line.ts";
import { counted } from "../../src/support/counted.ts";
import { formatDuration } from "../../src/support/duration.ts";
import type { ClientCall } from "./client.ts";
import type { Input } from "./put_input.ts";

const showEveryMs = 200;
/** Before that a rate says little. */
const etaMsMin = 1000;

export interface PutProgress {
  readonly messages: number;
  /** Of the input, what ends its messages included; those that were there before this process are `beforeBytes`. */
  readonly bytes: number;
  readonly beforeBytes: number;
  /** Null: nobody knows. */
  readonly totalBytes: number | null;
  readonly elapsedMs: number;
}

/** Pure. */
export function progressText({ messages, bytes, beforeBytes, totalBytes, elapsedMs }: PutProgress): string {
  const rate = Math.round(messages / Math.max(0.001, elapsedMs / 1000));
  const text = `${counted(messages, "message")} stored, ${rate} a second`;
  if (totalBytes === null || totalBytes === 0) return text;
  const done = Math.min(totalBytes, beforeBytes + bytes);
  const share = `, ${Math.floor(100 * done / totalBytes)} %`;
  if (elapsedMs < etaMsMin || bytes === 0) return text + share;
  return `${text}${share}, ${formatDuration(1000 * Math.ceil(elapsedMs * (totalBytes - done) / bytes / 1000))} left`;
}

export class PutProgressLine implements Disposable {
  readonly #line: WaitLine | null;
  readonly #separatorBytes: number;
  readonly #totalBytes: number | null;
  readonly #startMs = performance.now();
  #shownMs = -Infinity;
  #messages = 0;
  #bytes = 0;
  #beforeBytes = 0;

  constructor({ io, values }: ClientCall, input: Input | null) {
    this.#line = WaitLine.fits(io) && !values.quiet && input?.isSingle === false ? new WaitLine(io) : null;
    this.#separatorBytes = input?.separatorBytes ?? 0;
    this.#totalBytes = this.#line === null ? null : input?.totalBytes() ?? null;
  }

  stored(messages: number, bytes: number): void {
    this.#messages += messages;
    this.#bytes += bytes + messages * this.#separatorBytes;
    const nowMs = performance.now();
    if (this.#line === null || nowMs - this.#shownMs < showEveryMs) return;
    this.#shownMs = nowMs;
    this.#line.show(progressText({
      messages: this.#messages,
      bytes: this.#bytes,
      beforeBytes: this.#beforeBytes,
      totalBytes: this.#totalBytes,
      elapsedMs: nowMs - this.#startMs,
    }));
  }

  /** Messages that were put before. */
  skipped(messages: number, bytes: number): void {
    this.#beforeBytes += bytes + messages * this.#separatorBytes;
  }

  [Symbol.dispose](): void {
    this.#line?.[Symbol.dispose]();
  }
}

/** What happened at each server, for the sentence that a failed connect ends with. */
import { formatDuration } from "../support/duration.ts";

export class ConnectReport {
  readonly #failed = new Map<string, string>();
  readonly #waiting = new Map<string, { sinceMs: number; waitingFor: string }>();

  begin(name: string, nowMs: number): void {
    this.#waiting.set(name, { sinceMs: nowMs, waitingFor: "no connection" });
  }

  /** What the attempt at `name` has not got yet: "no answer to the handshake". */
  waitFor(name: string, waitingFor: string): void {
    const entry = this.#waiting.get(name);
    if (entry !== undefined) entry.waitingFor = waitingFor;
  }

  fail(name: string, why: string): void {
    this.#waiting.delete(name);
    this.#failed.set(name, why);
  }

  /** The attempt ran out of time. */
  timeOut(name: string, nowMs: number): void {
    const entry = this.#waiting.get(name);
    if (entry !== undefined) this.fail(name, `${entry.waitingFor} within ${formatDuration(nowMs - entry.sinceMs)}`);
  }

  /** Each server tried and what happened there, separated by semicolons. */
  describe(nowMs: number): string {
    for (const name of [...this.#waiting.keys()]) {
      // An attempt that the end of all attempts cut short says less than the one before it.
      if (!this.#failed.has(name)) this.timeOut(name, nowMs);
    }
    return [...this.#failed].map(([name, why]) => `${name}: ${why}`).join("; ");
  }
}

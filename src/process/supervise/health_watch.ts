/**
 * Asks a line of shell, again and again, whether a job is well. One check at a time, each bounded in time; what it
 * started is dead before the next one. Failures count in a row: one good answer forgives them.
 */
import { onAbort } from "../../support/abort.ts";
import type { Clock } from "../../support/clock.ts";
import { sleep } from "../../support/deadline.ts";
import { formatDuration } from "../../support/duration.ts";

/** Ends within the time that the signal leaves it; `null` is a good answer, else the end of a sentence. */
export type CheckHealth = (signal: AbortSignal) => Promise<string | null>;

export interface HealthOptions {
  readonly intervalMs: number;
  readonly timeoutMs: number;
  /** So many in a row are too many. */
  readonly failuresMax: number;
  readonly clock: Clock;
  /** Nobody wants to know any more: a check that runs is ended. */
  readonly signal: AbortSignal;
  /** A job that is frozen cannot answer: such checks count neither way. */
  readonly isFrozen: () => boolean;
  readonly check: CheckHealth;
  /** Told of each failure. */
  readonly onFailure: (what: string, inARow: number) => void;
}

/** Resolves with what was wrong when it was wrong too often, and with null when the signal ended it. */
export async function watchHealth(options: HealthOptions): Promise<string | null> {
  const { clock, signal, intervalMs, failuresMax } = options;
  for (let failures = 0; !signal.aborted;) {
    await sleep(clock, intervalMs, signal).catch(() => {});
    if (signal.aborted || options.isFrozen()) continue;
    const what = await checkOnce(options);
    if (signal.aborted || options.isFrozen()) continue;
    failures = what === null ? 0 : failures + 1;
    if (what !== null) options.onFailure(what, failures);
    if (what !== null && failures >= failuresMax) return what;
  }
  return null;
}

async function checkOnce({ clock, signal, timeoutMs, check }: HealthOptions): Promise<string | null> {
  const over = new AbortController();
  let isLate = false;
  const cancel = clock.after(timeoutMs, () => {
    isLate = true;
    over.abort();
  });
  const off = onAbort(signal, () => over.abort());
  try {
    const what = await check(over.signal);
    return isLate ? `did not end within ${formatDuration(timeoutMs)}` : what;
  } finally {
    cancel();
    off();
  }
}

/** The clock for decisions: monotonic milliseconds, never the wall clock. Tests replace it to control the time. */
import { openSync, readSync } from "node:fs";

export interface Clock {
  /**
   * Returns monotonic milliseconds since a fixed moment. Includes suspended time once `noticeSuspend` has noticed it.
   */
  now(): number;
  /** Checks whether the machine was suspended since the last check. Call it before a `now()` that safety depends on. */
  noticeSuspend(): void;
  /** Calls `callback` once after `delayMs`; the timer keeps the process alive. Returns a function that cancels it. */
  startTimer(delayMs: number, callback: () => void): () => void;
}

/** setTimeout takes 32 bits; a longer delay would fire immediately. */
const delayMsMax = 0x7fffffff;

/** The smallest difference between the clocks that counts as a suspend: /proc/uptime has a resolution of 10 ms. */
const suspendMsMin = 100;

/**
 * When to read /proc/uptime, in milliseconds: when the wall clock, which continues during a suspend, has drifted from
 * `performance.now`, and else at this interval, in case the wall clock was set back by the length of a suspend.
 */
const quiet = { driftMs: 20, readEveryMs: 1000 };

let shared: Clock | undefined;

/**
 * Returns the clock of this process. There is only one, because two clocks may have noticed different suspends, and
 * their leases could not be compared.
 */
export function systemClock(): Clock {
  shared ??= startClock();
  return shared;
}

/**
 * Starts the clock. `performance.now` stops while the machine is suspended; a server's clock does not. /proc/uptime
 * continues too, so its lead is added.
 */
function startClock(): Clock {
  const readBootTimeMs = openBootTime();
  const bootTimeMs = readBootTimeMs();
  const gapAtStartMs = bootTimeMs === null ? null : bootTimeMs - performance.now();
  let suspendedMs = 0;
  let read = { atMs: -Infinity, wallGapMs: 0 };
  const clock: Clock = {
    now: () => performance.now() + suspendedMs,
    noticeSuspend() {
      if (gapAtStartMs === null) return;
      const atMs = performance.now();
      const wallGapMs = Date.now() - atMs;
      if (Math.abs(wallGapMs - read.wallGapMs) < quiet.driftMs && atMs < read.atMs + quiet.readEveryMs) return;
      const nowMs = readBootTimeMs();
      if (nowMs === null) return;
      read = { atMs, wallGapMs };
      const gapMs = nowMs - performance.now() - gapAtStartMs;
      if (gapMs > suspendedMs + suspendMsMin) suspendedMs = gapMs;
    },
    startTimer(delayMs, callback) {
      let leftMs = Math.max(0, delayMs);
      const arm = (): ReturnType<typeof setTimeout> => {
        const stepMs = Math.min(leftMs, delayMsMax);
        leftMs -= stepMs;
        return setTimeout(() => {
          clock.noticeSuspend();
          if (leftMs > 0) timer = arm();
          else callback();
        }, stepMs);
      };
      let timer = arm();
      return () => clearTimeout(timer);
    },
  };
  return clock;
}

/**
 * Returns a function that reads the milliseconds since boot; null if it cannot. It is called often, so the file stays
 * open.
 */
function openBootTime(): () => number | null {
  try {
    const fd = openSync("/proc/uptime", "r");
    const text = Buffer.alloc(64);
    return () => {
      try {
        return Number.parseFloat(text.toString("latin1", 0, readSync(fd, text, 0, text.length, 0))) * 1000;
      } catch {
        return null;
      }
    };
  } catch {
    return () => null; // not Linux: a suspend is not noticed, see docs/limits.md
  }
}

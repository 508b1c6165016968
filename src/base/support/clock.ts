/**
 * The clock for decisions. It returns monotonic milliseconds, never the time of the wall clock. Tests replace it to
 * control the time.
 */
import { openSync, readSync } from "node:fs";

export interface Clock {
  /**
   * Returns monotonic milliseconds since a fixed moment. If the machine was suspended, the time includes the suspend
   * once `noticeSuspend` has detected it.
   */
  now(): number;
  /**
   * Checks whether the machine was suspended since the last check. Code whose safety depends on `now()` calls this
   * before.
   */
  noticeSuspend(): void;
  /**
   * Calls `callback` once after `delayMs`. The timer keeps the process alive. Returns the function that cancels the
   * timer.
   */
  startTimer(delayMs: number, callback: () => void): () => void;
}

/**
 * The longest delay of setTimeout, which takes 32 bits. With a longer delay, setTimeout would call the function
 * immediately.
 */
const delayMsMax = 0x7fffffff;

/**
 * The smallest difference between the clocks that counts as a suspend, in milliseconds. /proc/uptime has a resolution
 * of 10 ms.
 */
const suspendMsMin = 100;

/**
 * When to read /proc/uptime: if the wall clock, which continues during a suspend, has drifted by `driftMs` from
 * `performance.now`. Also every `readEveryMs`, because the wall clock may have been set back by the length of a
 * suspend.
 */
const quiet = { driftMs: 20, readEveryMs: 1000 };

let shared: Clock | undefined;

/**
 * Returns the only clock of this process. Two clocks could notice different suspends, and their times could then not be
 * compared.
 */
export function systemClock(): Clock {
  shared ??= startClock();
  return shared;
}

/**
 * Starts the clock. `performance.now` stops while the machine is suspended; the server's clock and /proc/uptime do not.
 * The clock therefore adds the time by which /proc/uptime is ahead.
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
 * Returns a function that reads the milliseconds since boot; the function returns null if it cannot. The file stays
 * open, because reads are frequent.
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
    return () => null; // outside Linux, baton does not detect a suspend (docs/limits.md)
  }
}

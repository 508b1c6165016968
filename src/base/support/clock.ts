/** The time for decisions: monotonic milliseconds, never the wall clock. Tests replace it, and so control the time. */
import { openSync, readSync } from "node:fs";

export interface Clock {
  /** Monotonic milliseconds since a fixed moment, including suspended time that was noticed. */
  now(): number;
  /** Checks whether the machine was suspended since the last check. Call it before a `now()` that safety depends on. */
  noticeSuspend(): void;
  /** Calls `callback` once after `delayMs`; the timer keeps the process alive. Returns a function that cancels it. */
  startTimer(delayMs: number, callback: () => void): () => void;
}

/** setTimeout takes 32 bits; a longer delay would fire immediately. */
const delayMsMax = 0x7fffffff;

/**
 * The difference between two readings of the clocks that counts as a suspend: /proc/uptime has a resolution of 10 ms.
 */
const suspendMsMin = 100;

/**
 * The wall clock also continues during a suspend, and is cheap to read: while it agrees with `performance.now`,
 * /proc/uptime is not read. If the wall clock was set back by the length of a suspend, the suspend is noticed this much
 * later. Milliseconds.
 */
const quiet = { driftMs: 20, readEveryMs: 1000 };

let shared: Clock | undefined;

/**
 * The clock of this process. There is only one, because leases are compared, and two clocks may have noticed different
 * suspends.
 */
export function systemClock(): Clock {
  shared ??= startClock();
  return shared;
}

/**
 * Starts the clock. `performance.now` stops while a machine is suspended; a server's clock does not. The difference is
 * added where /proc/uptime exists, which continues.
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

/** A function that reads the time since boot in milliseconds. It is called often, so the file stays open. */
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

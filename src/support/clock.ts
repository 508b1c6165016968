/**
 * Time for decisions: monotonic milliseconds, never the wall clock. Takes the place of a timer and of `performance.now`
 * everywhere, so that a test can turn the hands itself.
 */
import { openSync, readSync } from "node:fs";

export interface Clock {
  /** Monotonic milliseconds since some fixed moment, suspended time included as far as it was noticed. */
  now(): number;
  /** Looks whether the machine was suspended since the last look. Call it before a `now()` that safety hangs on. */
  noticeSuspend(): void;
  /** Runs `callback` once in `delayMs`, in a timer that keeps the process alive. Returns what cancels it. */
  after(delayMs: number, callback: () => void): () => void;
}

/** setTimeout takes 32 bits; a longer delay would fire at once. */
const delayMsMax = 0x7fffffff;

/** Milliseconds by which two readings of the two clocks may differ without a suspend: /proc/uptime counts in 10 ms. */
const suspendMsMin = 100;

/**
 * The wall clock goes on in a suspend too, and is cheap to read: as long as it has moved with `performance.now`, the file need
 * not be. Where somebody sets it back by what a suspend has added, the file says so this much later. Milliseconds.
 */
const quiet = { driftMs: 20, readEveryMs: 1000 };

let shared: Clock | undefined;

/** The clock of this process, one for all: what two clocks have noticed of a suspend may differ, and leases are compared. */
export function systemClock(): Clock {
  shared ??= startClock();
  return shared;
}

/**
 * `performance.now` stands still while a machine is suspended, a server's clock does not:
 * where /proc/uptime exists (it goes on) the difference is added.
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
    after(delayMs, callback) {
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

/** Asked many times for each job: the file is opened once, for as long as the process lives, and read from its beginning. */
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
    return () => null; // not Linux: a suspend goes unseen, which docs/limits.md says
  }
}

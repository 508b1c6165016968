/** Times that are promised, on a machine that may be busy. */
import { readFileSync } from "node:fs";

/** A stopwatch that leaves out the time in which any task of the machine waited for a processor or a disk. */
export class QuietTime {
  readonly #startMs = performance.now();
  readonly #startPressureMs = machinePressureMs();

  /** Since the start, as `withoutBusyTime` has it. */
  get ms(): number {
    return withoutBusyTime(this.elapsedMs, this.busyMs);
  }

  /** How long tasks have waited since the start, in milliseconds. */
  get busyMs(): number {
    return machinePressureMs() - this.#startPressureMs;
  }

  /** Since the start, in milliseconds. */
  get elapsedMs(): number {
    return performance.now() - this.#startMs;
  }
}

/** Returns a time without the part in which the machine was busy, and at least a quarter of it, in milliseconds. */
export function withoutBusyTime(elapsedMs: number, busyMs: number): number {
  return Math.max(elapsedMs / 4, elapsedMs - busyMs);
}

/**
 * How long tasks have waited for a processor or a disk since the machine started, in milliseconds, as Linux counts it
 * (Documentation/accounting/psi.rst); 0 where it does not.
 */
function machinePressureMs(): number {
  return pressureMs("cpu") + pressureMs("io");
}

function pressureMs(resource: "cpu" | "io"): number {
  try {
    const text = readFileSync(`/proc/pressure/${resource}`, "latin1");
    return Number(/^some .*\btotal=(\d+)$/m.exec(text)?.[1] ?? 0) / 1000;
  } catch {
    return 0;
  }
}

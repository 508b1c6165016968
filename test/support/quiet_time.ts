/** Times that are promised, on a machine that may be busy. */
import { readFileSync } from "node:fs";

/** A stopwatch that leaves out the time in which any task of the machine waited for a processor or a disk. */
export class QuietTime {
  readonly #startMs = performance.now();
  readonly #startPressureMs = machinePressureMs();

  /** Since the start, in milliseconds, without the time in which the machine was busy; at least a quarter of it. */
  get ms(): number {
    return Math.max(this.elapsedMs / 4, this.elapsedMs - this.busyMs);
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

/** The boot clock, on which the processors of a store agree about the end of a lease. */
import { readFileSync } from "node:fs";
import { BatonError } from "../../base/errors.ts";
import { loadLibc } from "../../base/process/libc.ts";

/**
 * The current boot of the machine: its ID, and the milliseconds since it, which are the same for every process of the
 * machine.
 */
export interface MachineBoot {
  readonly id: string;
  nowMs(): number;
}

/** Rejects CONFIG where the clock of the machine cannot be read: processes could not agree on the end of a lease. */
export async function machineBoot(): Promise<MachineBoot> {
  const libc = await loadLibc();
  const nowMs = libc === null ? uptimeMs : () => libc.bootTimeMs();
  let id = "";
  try {
    id = readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
  } catch {
    // Not Linux: the clock starts at 0 with each boot, and an older lease ends when the clock reaches its end.
  }
  if (!(nowMs() > 0)) {
    throw new BatonError(
      "CONFIG",
      "The retry processor needs the machine's boot clock, which cannot be read here: use Bun or Deno",
    );
  }
  return { id, nowMs };
}

/**
 * The same clock where the C library cannot be called, as under Node.js, in steps of 10 ms. NaN where it cannot be
 * read.
 */
function uptimeMs(): number {
  try {
    return Number(readFileSync("/proc/uptime", "latin1").split(" ")[0]) * 1000;
  } catch {
    return NaN;
  }
}

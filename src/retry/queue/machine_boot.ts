/** The boot clock of this machine, on which the leases of the processors of a store in a folder end. */
import { readFileSync } from "node:fs";
import { BatonError } from "../../base/errors.ts";
import { loadLibc } from "../../base/process/libc.ts";
import type { StoreClient } from "./store_methods.ts";

/**
 * The current boot of the machine: its ID, and the milliseconds since it, which are the same for every process of the
 * machine. On this clock the processors of a store agree about the end of a lease.
 */
export interface MachineBoot {
  readonly id: string;
  nowMs(): number;
}

/**
 * Returns the boot clock. Rejects with CONFIG if the clock of the machine cannot be read: processes could then not
 * agree on the end of a lease.
 */
export async function readMachineBoot(): Promise<MachineBoot> {
  const libc = await loadLibc();
  const nowMs = libc === null ? uptimeMs : () => libc.bootTimeMs();
  let id = "";
  try {
    id = readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
  } catch {
    // This system is not Linux: the clock starts at 0 with each boot, and an older lease ends when the clock reaches
    // its end.
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
 * Returns the time since boot, for systems where the C library cannot be called, such as Node.js. The time has steps of
 * 10 ms. NaN if it cannot be read.
 */
function uptimeMs(): number {
  try {
    return Number(readFileSync("/proc/uptime", "latin1").split(" ")[0]) * 1000;
  } catch {
    return NaN;
  }
}

/**
 * Returns the number of processors that try the messages of a store now; null if this machine cannot know the number.
 */
export async function countRunningProcessors(read: StoreClient["call"]): Promise<number | null> {
  let boot: MachineBoot;
  try {
    boot = await readMachineBoot();
  } catch (error) {
    if (error instanceof BatonError) return null;
    throw error;
  }
  return await read("processorCount", boot.id, boot.nowMs());
}

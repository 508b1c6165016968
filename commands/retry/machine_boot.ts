/** The machine's boot: its name, and the milliseconds since it, which every process of the machine reads alike. */
import { readFileSync } from "node:fs";
import { loadLibc } from "../../src/process/libc.ts";
import { BatonError } from "../../src/errors.ts";

export interface MachineBoot {
  readonly id: string;
  nowMs(): number;
}

/** Rejects CONFIG where no clock of the machine can be read: leases could not be told from one process to the next. */
export async function machineBoot(): Promise<MachineBoot> {
  const libc = await loadLibc();
  if (libc === null) {
    throw new BatonError("CONFIG", "The retry processor needs the C library's clock, which cannot be called here");
  }
  let id = "";
  try {
    id = readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
  } catch {
    // not Linux: the clock begins again at 0 with each boot, and a lease from before it ends when the clock gets there
  }
  return { id, nowMs: () => libc.bootTimeMs() };
}

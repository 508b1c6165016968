/** Changes resource limits of this process (setrlimit(2)). Loaded only when needed, to keep the start of baton fast. */
import process from "node:process";
import { openLibcFunctions } from "../libc.ts";

const signatures = {
  getrlimit: ["i32", "i32", "ptr"],
  setrlimit: ["i32", "i32", "ptr"],
  prctl: ["i32", "i32", "u64", "u64", "u64", "u64"],
} as const;

const coreDump = 4;
const openFiles = process.platform === "darwin" ? 8 : 7;
const dumpable = 4;

/**
 * The highest limit of open files that baton sets. A higher limit would slow programs that close every possible
 * descriptor.
 */
const openFilesMost = 1n << 20n;

/**
 * Raises the soft limit of open files to the hard limit, at most a million. Returns the previous soft limit; null if
 * nothing changed.
 */
export async function raiseOpenFilesLimit(): Promise<number | null> {
  const libc = await openLibcFunctions(signatures);
  const limits = new BigUint64Array(2); // struct rlimit: soft, hard
  const bytes = new Uint8Array(limits.buffer);
  if (libc === null || Number(libc.call.getrlimit(openFiles, bytes)) !== 0) return null;
  const [soft = 0n, hard = 0n] = limits;
  limits[0] = hard < openFilesMost ? hard : openFilesMost;
  return limits[0] > soft && Number(libc.call.setrlimit(openFiles, bytes)) === 0 ? Number(soft) : null;
}

/** Prevents a core dump when a signal ends this process, even if the kernel passes core dumps to a program. */
export async function forbidCoreDump(): Promise<void> {
  const libc = await openLibcFunctions(signatures);
  if (process.platform === "linux") libc?.call.prctl(dumpable, 0n, 0n, 0n, 0n);
  libc?.call.setrlimit(coreDump, new Uint8Array(16));
}

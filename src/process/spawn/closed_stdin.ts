/**
 * Whether a standard stream was closed when this process was started: stdin (`<&-`) reads like an empty file ever since, and
 * what is written to stdout (`>&-`) is nowhere.
 */
import { readFileSync } from "node:fs";
import process from "node:process";

const closeOnExec = 0o2000000;

/**
 * Bun opens /dev/null in the place of a standard stream that is closed, for itself alone: nothing that was handed over is marked
 * close-on-exec. False where that cannot be seen: under Deno, which marks nothing, and off Linux.
 */
export function stdinWasClosed(): boolean {
  return wasClosed(0);
}

/** The same of stdout. */
export function stdoutWasClosed(): boolean {
  return wasClosed(1);
}

function wasClosed(fd: 0 | 1): boolean {
  if (!("Bun" in globalThis) || process.platform !== "linux") return false;
  try {
    const flags = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "latin1"))?.[1] ?? "0";
    return (Number.parseInt(flags, 8) & closeOnExec) !== 0;
  } catch {
    return true; // there is none
  }
}

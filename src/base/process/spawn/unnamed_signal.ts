/**
 * Detects under Deno 2.9 that a real-time signal ended a child. Deno has no name for such a signal. Instead of
 * reporting the end, Deno rejects an internal promise with "Invalid signal: 40", and that error would end baton.
 */
import process from "node:process";
import { errorMessage } from "../../errors.ts";
import { readProcess } from "../proc/process_table.ts";

/**
 * Calls `listener` when a signal without a name has ended the child `pid`. Returns the function that unsubscribes. Does
 * nothing under Bun.
 */
export function onChildEndByUnnamedSignal(pid: number, listener: (signalNumber: number) => void): () => void {
  if (!("Deno" in globalThis)) return () => {};
  const onRejection = (event: Event) => {
    const { reason } = event as Event & { readonly reason: unknown };
    const number = /^Invalid signal: (\d+)$/.exec(errorMessage(reason))?.[1];
    if (number === undefined || isRunning(pid)) return; // the error does not name the process
    event.preventDefault();
    globalThis.removeEventListener("unhandledrejection", onRejection);
    listener(Number(number));
  };
  globalThis.addEventListener("unhandledrejection", onRejection);
  return () => globalThis.removeEventListener("unhandledrejection", onRejection);
}

function isRunning(pid: number): boolean {
  const row = readProcess(pid);
  return row !== null && !row.dead && row.parent === process.pid;
}

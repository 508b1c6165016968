/**
 * Deno 2.9 has no name for a real-time signal: of a process that one ended it tells nobody, and rejects a promise nobody
 * can get at with "Invalid signal: 40", which would end baton.
 */
import process from "node:process";
import { messageOf } from "../../errors.ts";
import { readProcess } from "./process_table.ts";

/** Calls `listener` when the child `pid` was ended by such a signal. Returns what stops listening; elsewhere nothing happens. */
export function onUnnamedSignal(pid: number, listener: (signalNumber: number) => void): () => void {
  if (!("Deno" in globalThis)) return () => {};
  const hear = (event: Event) => {
    const { reason } = event as Event & { readonly reason: unknown };
    const number = /^Invalid signal: (\d+)$/.exec(messageOf(reason))?.[1];
    if (number === undefined || isRunning(pid)) return; // which process it was is not said
    event.preventDefault();
    globalThis.removeEventListener("unhandledrejection", hear);
    listener(Number(number));
  };
  globalThis.addEventListener("unhandledrejection", hear);
  return () => globalThis.removeEventListener("unhandledrejection", hear);
}

function isRunning(pid: number): boolean {
  const row = readProcess(pid);
  return row !== null && !row.dead && row.parent === process.pid;
}

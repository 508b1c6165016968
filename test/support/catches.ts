/** Whether a process has a handler of its own for a signal by now. */
import { readFileSync } from "node:fs";
import { constants } from "node:os";

export function catches(pid: number, signal: NodeJS.Signals): boolean {
  const mask = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1] ?? "0";
  return (BigInt(`0x${mask}`) >> BigInt(constants.signals[signal] - 1) & 1n) === 1n;
}

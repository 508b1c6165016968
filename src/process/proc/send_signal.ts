/** Signals to processes that may have ended. */
import process from "node:process";

/** Returns false if there is no such process. EPERM means that it exists and may not be signalled. */
export function sendSignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Signals to processes that may be gone. */
import process from "node:process";

/** False if there was nothing to send to. EPERM: it is there, and not ours to signal. */
export function sendSignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Whether there is a process of that number, which may have ended and wait for its parent. */
import process from "node:process";

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

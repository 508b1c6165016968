/** Kills what is left of critical sections, whatever group or session it is in: whoever has a file of theirs open. */
import { readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

/** `path` is a file, or a folder and all files in it. */
export function killHolders(path: string, observerPid: number): void {
  for (const pid of processesHolding((file) => file === path || file.startsWith(`${path}/`))) {
    if (pid === observerPid || pid === process.pid) continue;
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // Gone in between.
    }
  }
}

/** Every process that has such a file open. */
function processesHolding(isMeant: (file: string) => boolean): number[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map(Number).filter((pid) => {
    try {
      const folder = `/proc/${pid}/fd`;
      return readdirSync(folder).some((fd) => isMeant(readlinkSync(join(folder, fd))));
    } catch {
      return false; // ended while it was looked at
    }
  });
}

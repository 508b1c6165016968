/** Where a data directory is locked: no two processes have the same place open at a time, and a copy of it is at another. */
import { readFileSync, statSync } from "node:fs";
import { hostname } from "node:os";

/** Of a directory that is there. */
export function storeLocation(dataDir: string): string {
  const { dev, ino } = statSync(dataDir, { bigint: true });
  return `${hostname()} ${machineId()} ${dev}:${ino}`;
}

/** Of systemd, where there is one: machines may have the same name. */
export function machineId(): string {
  try {
    return readFileSync("/etc/machine-id", "utf8").trim();
  } catch {
    return "-";
  }
}

/**
 * The location where a data directory is locked. Two processes never have the same location open, and a copy has
 * another one.
 */
import { readFileSync, statSync } from "node:fs";
import { hostname } from "node:os";

/** The location of an existing directory. */
export function storeLocation(dataDir: string): string {
  const { dev, ino } = statSync(dataDir, { bigint: true });
  return `${hostname()} ${machineId()} ${dev}:${ino}`;
}

/** The machine id of systemd, if present: two machines may have the same host name. */
export function machineId(): string {
  try {
    return readFileSync("/etc/machine-id", "utf8").trim();
  } catch {
    return "-";
  }
}

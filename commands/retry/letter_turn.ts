/** One process of a store sends dead letters at a time: a lock on a file of the store, which the system gives back. */
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";

/** What gives the turn back; null: another process has it. */
export function takeLetterTurn(folder: string, lockFile: (fd: number) => boolean): (() => void) | null {
  const fd = openSync(join(folder, "letters.lock"), "a", 0o600);
  if (lockFile(fd)) return () => closeSync(fd);
  closeSync(fd);
  return null;
}

/** Whether the command stays in baton's process group, where it has the terminal. */
import { fstatSync } from "node:fs";
import type { Libc } from "../libc.ts";

/** "auto": if standard input is a terminal, since a session of its own would take /dev/tty from ssh and sudo. */
export function isForeground(wanted: boolean | "auto", libc: Libc | null): boolean {
  if (wanted !== "auto") return wanted;
  try {
    return fstatSync(0).isCharacterDevice() && (libc?.isTerminal(0) ?? false);
  } catch {
    return false; // closed
  }
}

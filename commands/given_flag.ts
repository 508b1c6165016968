/** A flag that was given to a form of a command that it would do nothing for. Pure. */
import type { SettingTable } from "../src/config/setting.ts";

/**
 * The first of these settings that stands on the command line, by its long form; null when none does. `given`: settings that
 * were given as flags: what a file or a variable says is for every command, and for whichever form makes use of it.
 */
export function givenFlag(settings: SettingTable, given: ReadonlyMap<string, unknown>): string | null {
  const found = Object.entries(settings).find(([name]) => given.has(name))?.[1].flag;
  return found?.split(", ").at(-1) ?? null;
}

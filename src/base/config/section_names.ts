/** Finds the names that users have given to sections, such as that of `[pool.component.import]`. */
import type { ConfigFile } from "./resolve_settings.ts";
import type { SettingTable } from "./setting.ts";

/** Returns the names that users have given to sections with these settings, sorted. */
export function configSectionNames(settings: SettingTable, files: readonly ConfigFile[]): string[] {
  const keys = Object.values(settings).flatMap(({ key }) => key ?? []);
  const written = files.flatMap(({ values }) => [...values.keys()]);
  return [...new Set(written.flatMap((one) => keys.flatMap((key) => sectionNameOfKey(key, one) ?? [])))].sort();
}

/** Returns the section's name in a key that a file contains; null if the key belongs to another setting. */
function sectionNameOfKey(key: string, written: string): string | null {
  const [before = "", after] = key.split("NAME");
  if (after === undefined || !written.startsWith(before) || !written.endsWith(after)) return null;
  return written.length > before.length + after.length ? written.slice(before.length, -after.length) : null;
}

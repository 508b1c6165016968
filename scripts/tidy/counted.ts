/** Findings that are known and not yet fixed. They are counted, and a count may only decrease. */
import type { Finding } from "./source_file.ts";

/** The known counts, by what is counted. */
export type KnownCounts = Readonly<Record<string, number>>;

/**
 * Returns the findings whose count exceeds the known one, and a finding for each known count that is too high. `keyOf`
 * returns what a finding counts for, or null; `list` is the file with the numbers.
 */
export function checkCounted(
  findings: readonly Finding[],
  known: KnownCounts,
  { keyOf, list, noun }: { keyOf(finding: Finding): string | null; readonly list: string; readonly noun: string },
): Finding[] {
  const byKey = new Map<string, Finding[]>();
  const reported: Finding[] = [];
  for (const finding of findings) {
    const key = keyOf(finding);
    if (key === null) reported.push(finding);
    else byKey.set(key, [...byKey.get(key) ?? [], finding]);
  }
  for (const key of new Set([...byKey.keys(), ...Object.keys(known)])) {
    const found = byKey.get(key) ?? [];
    const allowed = known[key] ?? 0;
    if (found.length > allowed) reported.push(...found);
    if (found.length >= allowed) continue;
    const message = found.length === 0
      ? `"${key}" has no ${noun}: delete its line`
      : `"${key}" has ${found.length} ${noun}s: write ${found.length} in place of ${allowed}`;
    reported.push({ path: list, line: 1, message });
  }
  return reported;
}

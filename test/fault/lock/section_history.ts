/** The critical sections of a round as a history for the checker: a grant before each begins, and a release after it has ended. Pure. */
import type { HistoryOperation } from "../../checker/operation.ts";
import type { Section } from "./observer.ts";

/** `lock` names the round's lock. Sections without a token are left out. */
export function sectionHistory(lock: string, sections: readonly Section[]): HistoryOperation[] {
  const begun = sections.filter(({ openedMs, text }) => openedMs !== null && /^\d+\n$/.test(text));
  const tokens = begun.map(({ text }) => BigInt(text));
  // A keeper's tokens are beyond the integers of JSON.
  const first = tokens.reduce((least, token) => (token < least ? token : least), tokens[0] ?? 0n);
  return begun.flatMap(({ name, openedMs, closedMs }, number): HistoryOperation[] => {
    const holder = `${name}#${number}`;
    const token = Number((tokens[number] ?? first) - first);
    const about = { model: "lock", client: holder, keys: [lock] };
    const to = openedMs ?? 0;
    // The grant is not later than the section's begin; its request may be as old as the round.
    const grant = {
      ...about,
      do: "acquire",
      input: { holder },
      from: -Infinity,
      to,
      outcome: "ok",
      output: { token },
    } as const;
    if (closedMs === null) return [grant];
    const release = { ...about, do: "release", input: { holder, token }, from: closedMs, to: Infinity } as const;
    return [grant, { ...release, outcome: "unknown", output: null }];
  });
}

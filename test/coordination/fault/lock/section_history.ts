/**
 * The critical sections of a round as a history for the checker: a grant before each begins, and a release after it has
 * ended. Pure.
 */
import type { HistoryOperation } from "../../../checker/operation.ts";
import type { Section } from "./observer.ts";

/**
 * The tokens in what sections say, counted from the least one: a keeper's are beyond the integers of JSON. Other texts
 * have none.
 */
export function numbersOfTokens(texts: readonly string[]): ReadonlyMap<string, number> {
  const tokens = texts.filter((text) => /^\d+\n$/.test(text)).map((text) => [text, BigInt(text)] as const);
  const first = tokens.reduce((least, [, token]) => (token < least ? token : least), tokens[0]?.[1] ?? 0n);
  return new Map(tokens.map(([text, token]) => [text, Number(token - first)]));
}

/** `lock` names the round's lock. Sections without a token are left out. */
export function sectionHistory(lock: string, sections: readonly Section[]): HistoryOperation[] {
  const begun = sections.filter(({ openedMs }) => openedMs !== null);
  const numbers = numbersOfTokens(begun.map(({ text }) => text));
  return begun.flatMap(({ name, openedMs, closedMs, text }, number): HistoryOperation[] => {
    const holder = `${name}#${number}`;
    const token = numbers.get(text);
    if (token === undefined) return [];
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

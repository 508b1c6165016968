/**
 * The participants of a round as a history for the checker: their arrivals, and what those that were started show.
 * Pure.
 */
import type { HistoryOperation } from "../../../checker/operation.ts";
import { numbersOfTokens } from "../lock/section_history.ts";
import type { MemberEvidence } from "./judge.ts";

/** `barrier` names the round's barrier. Sections without a token are left out. */
export function generationHistory(
  barrier: string,
  parties: number,
  members: readonly MemberEvidence[],
): HistoryOperation[] {
  const numbers = numbersOfTokens(members.flatMap(({ section }) => (section === null ? [] : [section.text])));
  return members.flatMap(({ name: member, section, spawnedMs }): HistoryOperation[] => {
    const about = { model: "barrier", client: member, keys: [barrier] };
    const arrival = { ...about, do: "arrive", input: { member, parties }, from: spawnedMs } as const;
    const token = numbers.get(section?.text ?? "");
    const beganMs = section?.openedMs ?? null;
    if (token === undefined || beganMs === null) {
      // It may have been there for a while, and may have been counted.
      const gone = { ...about, client: `end of ${member}`, do: "quit", input: { member }, from: spawnedMs } as const;
      return [arrival, gone].map((one) => ({ ...one, to: Infinity, outcome: "unknown", output: null }));
    }
    return [
      { ...arrival, to: beganMs, outcome: "ok", output: {} },
      { ...about, do: "depart", input: { member }, from: beganMs, to: beganMs, outcome: "ok", output: { token } },
    ];
  });
}

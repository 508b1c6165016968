/**
 * Whether a subscriber is where it was put: what is next, whether it is subscribed, what it was passed over by. Pure.
 */
import type { Findings } from "./findings.ts";
import { isTooEarly, isUntold, type PassedOver } from "./gaps.ts";
import type { At } from "./history.ts";
import type { Reader } from "./judge_readers.ts";
import { at } from "./judge_puts.ts";
import { subscriptionsOf } from "./subscriptions.ts";

/** The same `last` in one session has the same next message, until there is a seek; and a subscriber stays one. */
export function judgePlaces(
  { client, log, operations }: Reader,
  { findings, retains }: { readonly findings: Findings; readonly retains: boolean },
): void {
  const next = new Map<string, { readonly id: number; readonly returnedAt: At }>();
  const subscriptions = subscriptionsOf(operations);
  for (const operation of operations) {
    // After a power loss the server is ahead of the client's state, until the client has itself put back.
    if (operation.do === "seek" && operation.result.outcome !== "fail") next.clear();
    if (operation.do !== "get") continue;
    const { session, last = -1, result, invokedAt, returnedAt } = operation;
    if (result.missed !== undefined && !retains && !log.lost.hasBetween(last, result.got?.[0]?.[0] ?? -1)) {
      findings.add("lost", () => `${client} was told that ${result.missed} messages of "${log.topic}" are gone`);
    }
    if (result.status === "NOT_SUBSCRIBED") {
      const mine = subscriptions.findLast(({ mustFrom }) => mustFrom < invokedAt);
      if (mine !== undefined && mine.endFrom > returnedAt) {
        findings.add(
          "subscription lost",
          () =>
            `${client} subscribed to "${log.topic}" by ${at(mine.mustFrom)}, and was told at ${
              at(returnedAt)
            } that it is not`,
        );
      }
    }
    if (last < 0 || result.outcome !== "ok") continue;
    const key = `${session} ${last}`;
    const known = next.get(key);
    const [first] = result.got ?? [];
    if (retains && result.missed !== undefined) continue; // what was next is gone
    if (log.lost.has(known?.id ?? null)) next.delete(key);
    const isOther = known !== undefined && !log.lost.has(known.id) &&
      (first === undefined ? known.returnedAt < invokedAt : first[0] !== known.id);
    if (isOther) {
      findings.add(
        "same last",
        () =>
          `${client} asked "${log.topic}" behind ${last} twice, and was answered ${known.id} and ${
            first?.[0] ?? "nothing"
          }`,
      );
    }
    if (first !== undefined && known === undefined) next.set(key, { id: first[0], returnedAt });
  }
}

/**
 * Whoever is passed over is told by how much, and by no more than retention gives up. `seen`: all that ever came;
 * `keeps`: the number of the newest messages that retention keeps.
 */
export function judgeGaps({ client, log }: Reader, { gaps, seen, keeps, findings }: {
  readonly gaps: readonly PassedOver[];
  readonly seen: ReadonlySet<number>;
  readonly keeps: number;
  readonly findings: Findings;
}): void {
  for (const [place, gap] of gaps.entries()) {
    if (isTooEarly(gap, log, keeps) && !log.lost.hasBetween(gap.behind, gap.before)) {
      const say = () => `${client} got ${gap.before} of "${log.topic}" next, behind ${gap.behind}; ${keeps} are kept`;
      findings.add("given up too early", say);
    }
    const told = gaps.slice(0, place).filter((other) => other.before > gap.behind && other.behind < gap.before);
    if (!isUntold(gap, log, { had: seen, told })) continue;
    const { behind, before, missed } = gap;
    const say = () =>
      `${client} was told that ${missed} messages of "${log.topic}" are gone between ${behind} and ${before}`;
    findings.add("missed untold", say);
  }
}

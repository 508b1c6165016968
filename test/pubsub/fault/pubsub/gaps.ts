/**
 * What a subscriber need not have: what it has skipped by a seek, and what retention has given up and said so. Pure.
 */
import type { At, Operation } from "./history.ts";
import type { PutMessage, TopicLog } from "./judge_puts.ts";

export interface Seek {
  readonly invokedAt: At;
  /** What was put later than that is behind it. */
  readonly doneBy: At;
  readonly to: number | "start" | "end";
  readonly isSure: boolean;
}

/** In the order of time; what definitely failed is none. `operations`: of one client at one topic. */
export function seeksOf(operations: readonly Operation[]): Seek[] {
  return operations.flatMap(({ do: what, to, result: { outcome }, invokedAt, returnedAt }, place): Seek[] => {
    if (what !== "seek" || to === undefined || outcome === "fail") return [];
    if (outcome === "ok") return [{ invokedAt, doneBy: returnedAt, to, isSure: true }];
    return [{ invokedAt, doneBy: unheardBy(operations, place), to, isSure: false }];
  });
}

/** Nobody heard of its end: it was before the next process of the client is answered, or never. */
function unheardBy(operations: readonly Operation[], place: number): At {
  for (let at = place + 1; at < operations.length; at++) {
    const { result, returnedAt } = operations[at] as Operation;
    if (result.outcome === "ok") return returnedAt;
  }
  return Infinity;
}

/** A get that was told that retention has given up messages behind its place. */
export interface PassedOver {
  readonly behind: number;
  /** The next message that is there; Infinity: none was when it was answered. */
  readonly before: number;
  readonly missed: number;
  readonly answeredAt: At;
  /** The server may have had its place behind all that was put by then, and the client did not know. */
  readonly leftBy: At;
}

export function passedOverOf(operations: readonly Operation[]): PassedOver[] {
  let leftBy = -Infinity;
  return operations.flatMap(({ do: what, result: { missed, got, outcome }, last = -1, returnedAt }, place) => {
    const moves = what === "seek" || what === "unsubscribe";
    if (moves && outcome === "unknown") leftBy = Math.max(leftBy, unheardBy(operations, place));
    if (what !== "get" || missed === undefined) return [];
    return [{ behind: last, before: got?.[0]?.[0] ?? Infinity, missed, answeredAt: returnedAt, leftBy }];
  });
}

/** Whether the subscriber was told that this message is gone. */
export function isToldGone({ id, invokedAt }: PutMessage, gaps: readonly PassedOver[]): boolean {
  return gaps.some(({ behind, before, answeredAt }) =>
    id === null ? invokedAt < answeredAt : id > behind && id < before && invokedAt < answeredAt
  );
}

/**
 * Messages that the gap has, beyond what was had of it: never more than were told. `told`: gaps of before; the server
 * is behind those also where the client, or another process of its state, has forgotten them.
 */
export function isUntold(
  { behind, before, missed, leftBy }: PassedOver,
  { byId }: TopicLog,
  { had, told }: { readonly had: ReadonlySet<number>; readonly told: readonly PassedOver[] },
): boolean {
  // Where the server has put it after a seek, and what came behind it meanwhile, is not known here.
  if (behind < 0 || before === Infinity) return false;
  let gone = 0;
  for (let id = behind + 1; id < before; id++) {
    const message = byId.get(id);
    if (message === undefined || had.has(id) || message.invokedAt < leftBy) continue;
    if (!told.some((gap) => id > gap.behind && id < gap.before)) gone++;
  }
  return gone > missed;
}

/** Whether messages were given up though fewer than `least` newer ones can have been there. */
export function isTooEarly({ before, answeredAt }: PassedOver, { byName }: TopicLog, least: number): boolean {
  if (before === Infinity) return false;
  let newer = 0;
  for (const { id, invokedAt } of byName.values()) {
    if (invokedAt < answeredAt && (id === null || id >= before)) newer++;
  }
  return newer < least;
}

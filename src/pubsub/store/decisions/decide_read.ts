/** Decides what get, subscribe, unsubscribe and seek do, from the subscriber's position and the topic's log. Pure. */
import {
  type GetOperation,
  type RefusedOperation,
  refuseOperation,
  type SeekOperation,
  type SubscribeOperation,
} from "../operations/store_operations.ts";
import { compareClientOperation, type LastClientOperation } from "./session_fence.ts";

/** A subscriber's stored position and last operation. */
export interface SubscriberState extends LastClientOperation {
  /** The last acknowledged message; null if the client is not subscribed. */
  readonly position: number | null;
}

/** The ends of a topic's log: the messages from `firstId` to `lastId` exist. */
export interface TopicLogState {
  readonly firstId: number;
  readonly lastId: number;
  /** The ids up to this one were assigned before a restore; how many is unknown. 0 without a restore. */
  readonly baseOffset?: number;
}

export type GetDecision =
  | RefusedOperation
  /** The subscriber's new position, the next message, and how many messages before it are gone (`missed`). */
  | { readonly kind: "read"; readonly position: number; readonly next: number; readonly missed: number };

/**
 * Decides which message a get returns next. It acknowledges `last`: the subscriber's position moves there, never back.
 * A get with the same `last` returns the same message again.
 */
export function decideGet(get: GetOperation, subscriber: SubscriberState, log: TopicLogState): GetDecision {
  const { position } = subscriber;
  if (position === null) return refuseOperation("NOT_SUBSCRIBED", "this client is not subscribed to the topic");
  const order = compareClientOperation(subscriber, get.session, get.op);
  if (order === "stale") {
    return refuseOperation(
      "STALE_OP",
      `operation ${subscriber.op} was done since; this get is from operation ${get.op}`,
    );
  }
  if (get.last > log.lastId) {
    return refuseOperation("BAD_REQUEST", `message ${get.last} does not exist: the newest is ${log.lastId}`);
  }
  const moved = Math.max(position, get.last);
  const next = Math.max(moved + 1, log.firstId);
  return { kind: "read", position: moved, next, missed: countMissedMessages(moved, next, log.baseOffset) };
}

/** How many ids a topic skips after a loss: more than were assigned to lost messages. */
export const idsSkippedAfterLoss = 2 ** 32;

/**
 * Returns how many messages a subscriber has missed between message `had` and message `next`. Returns 0 if a restore or
 * a loss is between them, because their number is then unknown. `baseOffset` shows only the last restore or loss; an
 * earlier one shows by the ids that the topic skipped.
 */
export function countMissedMessages(had: number, next: number, baseOffset = 0): number {
  const count = next - had - 1;
  return count > idsSkippedAfterLoss || (had < baseOffset && next > baseOffset) ? 0 : count;
}

export type PositionDecision =
  | RefusedOperation
  /** `position`: null if no longer subscribed. `numbered`: the operation's number must be stored. */
  | { readonly kind: "placed"; readonly position: number | null; readonly numbered: boolean };

/** Decides a subscribe or unsubscribe. A known subscriber keeps its position; a new one starts at the end. */
export function decideSubscription(
  operation: SubscribeOperation,
  subscriber: SubscriberState,
  log: TopicLogState,
): PositionDecision {
  const order = compareClientOperation(subscriber, operation.session, operation.op);
  if (order === "stale") return refuseStale(operation.kind, operation.op, subscriber);
  if (order === "no room") return refuseWithoutRoom(operation.op, subscriber);
  const { position } = subscriber;
  if (order === "repeated") return { kind: "placed", position, numbered: false };
  const wanted = operation.kind === "unsubscribe" ? null : position ?? log.lastId;
  return { kind: "placed", position: wanted, numbered: order === "newer" };
}

export function decideSeek(seek: SeekOperation, subscriber: SubscriberState, log: TopicLogState): PositionDecision {
  const order = compareClientOperation(subscriber, seek.session, seek.op);
  if (order === "stale") return refuseStale("seek", seek.op, subscriber);
  if (order === "no room") return refuseWithoutRoom(seek.op, subscriber);
  const { position } = subscriber;
  if (position === null) return refuseOperation("NOT_SUBSCRIBED", "this client is not subscribed to the topic");
  if (order === "repeated") return { kind: "placed", position, numbered: false };
  const wanted = seek.to === "start" ? log.firstId - 1 : seek.to === "end" ? log.lastId : seek.to;
  if (wanted > log.lastId) {
    return refuseOperation("BAD_REQUEST", `message ${wanted} does not exist: the newest is ${log.lastId}`);
  }
  if (wanted < log.firstId - 1) {
    return refuseOperation("BAD_REQUEST", `message ${wanted + 1} no longer exists: the oldest is ${log.firstId}`);
  }
  return { kind: "placed", position: wanted, numbered: order === "newer" };
}

function refuseStale(what: string, op: number | null, { op: done }: SubscriberState): RefusedOperation {
  return refuseOperation("STALE_OP", `this ${what} is operation ${op}; operation ${done} was already done`);
}

function refuseWithoutRoom(op: number | null, { op: done }: SubscriberState): RefusedOperation {
  return refuseOperation("BAD_REQUEST", `operation ${op} leaves no room for later ones; the last one was ${done}`);
}

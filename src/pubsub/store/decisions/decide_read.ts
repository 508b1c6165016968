/** Decides what get, subscribe, unsubscribe and seek do, from the subscriber's position and the topic's log. Pure. */
import {
  type GetOperation,
  type RefusedOperation,
  refuseOperation,
  type SeekOperation,
  type SubscribeOperation,
} from "../operations/store_operations.ts";
import { compareWithLastOperation, type LastClientOperation } from "./session_fence.ts";

export interface SubscriberState extends LastClientOperation {
  /** The last acknowledged message; null if the client is not subscribed. */
  readonly position: number | null;
}

/** The ends of a topic's log: the messages from `firstId` to `lastId` exist. */
export interface TopicLogState {
  readonly firstId: number;
  readonly lastId: number;
  /** The message IDs up to this one may have been assigned before a restore or loss. 0 if there was none. */
  readonly baseOffset?: number;
}

export type GetDecision =
  | RefusedOperation
  /**
   * `position` is the subscriber's new position, `next` is the ID of the next message, and `missed` is the number of
   * deleted messages before it.
   */
  | { readonly kind: "read"; readonly position: number; readonly next: number; readonly missed: number };

/**
 * Decides which message a get returns next. The get acknowledges the messages up to `last`, which moves the position
 * forward. A get with the same `last` returns the same message again.
 */
export function decideGet(get: GetOperation, subscriber: SubscriberState, log: TopicLogState): GetDecision {
  const { position } = subscriber;
  if (position === null) return refuseOperation("NOT_SUBSCRIBED", "this client is not subscribed to the topic");
  const order = compareWithLastOperation(subscriber, get.session, get.op);
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

/** The number of IDs that a topic skips after a loss. It is certain that fewer messages were lost. */
export const messageIdsSkippedAfterLoss = 2 ** 32;

/**
 * Returns the number of messages that a subscriber has missed between message `had` and message `next`. If a restore or
 * a loss is between them, the number is unknown, and the result is 0. `baseOffset` shows only the last restore or loss.
 * An earlier loss appears as a large gap, because the topic skipped IDs.
 */
export function countMissedMessages(had: number, next: number, baseOffset = 0): number {
  const count = next - had - 1;
  return count > messageIdsSkippedAfterLoss || (had < baseOffset && next > baseOffset) ? 0 : count;
}

export type SubscriptionDecision =
  | RefusedOperation
  /**
   * `position` is null if the client is no longer subscribed. `numbered` is true if the operation's number must be
   * stored.
   */
  | { readonly kind: "placed"; readonly position: number | null; readonly numbered: boolean };

/**
 * Decides a subscribe or unsubscribe. A known subscriber keeps its position; a new subscriber starts at the end of the
 * log.
 */
export function decideSubscription(
  operation: SubscribeOperation,
  subscriber: SubscriberState,
  log: TopicLogState,
): SubscriptionDecision {
  const order = compareWithLastOperation(subscriber, operation.session, operation.op);
  if (order === "stale") return refuseStale(operation.kind, operation.op, subscriber);
  if (order === "no room") return refuseWithoutRoom(operation.op, subscriber);
  const { position } = subscriber;
  if (order === "repeated") return { kind: "placed", position, numbered: false };
  const wanted = operation.kind === "unsubscribe" ? null : position ?? log.lastId;
  return { kind: "placed", position: wanted, numbered: order === "newer" };
}

export function decideSeek(seek: SeekOperation, subscriber: SubscriberState, log: TopicLogState): SubscriptionDecision {
  const order = compareWithLastOperation(subscriber, seek.session, seek.op);
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

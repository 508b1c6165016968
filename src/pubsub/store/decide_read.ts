/** What a get, a subscribe, an unsubscribe and a seek do, given the subscriber's place and the topic's log. Pure. */
import type { StatusCode } from "../../wire/pubsub/status_codes.ts";
import type { GetOperation, SeekOperation, SubscribeOperation } from "../../wire/pubsub/store_operations.ts";
import { operationOrder, type OperationState } from "./topic_fence.ts";

export interface SubscriberState extends OperationState {
  /** The last message it had; null: not subscribed. */
  readonly position: number | null;
}

/** A topic's log: ids from `first` to `last` are there. */
export interface LogState {
  readonly first: number;
  readonly last: number;
  /** Numbers up to it are those of a time before a restore, and nobody knows how many of them were given; 0 otherwise. */
  readonly baseOffset?: number;
}

interface ReadRefusal {
  readonly kind: "refused";
  readonly code: StatusCode;
  readonly reason: string;
}

export type GetDecision =
  | ReadRefusal
  /** The subscriber is at `position` now; messages from `next` on are for it, `missed` before them are gone. */
  | { readonly kind: "read"; readonly position: number; readonly next: number; readonly missed: number };

/** The same `last` again gives the same next message: the place moves by what the client says it had, and never back. */
export function decideGet(get: GetOperation, subscriber: SubscriberState, log: LogState): GetDecision {
  const { position } = subscriber;
  if (position === null) return refused("NOT_SUBSCRIBED", "this client is not subscribed to the topic");
  const order = operationOrder(subscriber, get.session, get.op);
  if (order === "stale") {
    return refused("STALE_OP", `operation ${subscriber.op} was done since, and this get knows of ${get.op} only`);
  }
  if (get.last > log.last) {
    return refused("BAD_REQUEST", `message ${get.last} was never given to anybody: ${log.last} is the newest`);
  }
  const moved = Math.max(position, get.last);
  const next = Math.max(moved + 1, log.first);
  return { kind: "read", position: moved, next, missed: missedBetween(moved, next, log.baseOffset) };
}

/** Messages between the last that was had and the next that is there; across a restore nobody can say. */
export function missedBetween(had: number, next: number, baseOffset = 0): number {
  return had < baseOffset && next > baseOffset ? 0 : next - had - 1;
}

export type PlaceDecision =
  | ReadRefusal
  /** null: no longer subscribed. `done`: the operation's number is to be stored. */
  | { readonly kind: "placed"; readonly position: number | null; readonly numbered: boolean };

/** Who is subscribed stays where it is; who becomes so again begins at the end. */
export function decideSubscription(
  operation: SubscribeOperation,
  subscriber: SubscriberState,
  log: LogState,
): PlaceDecision {
  const order = operationOrder(subscriber, operation.session, operation.op);
  if (order === "stale") return stale(operation.kind, operation.op, subscriber);
  const { position } = subscriber;
  if (order === "repeated") return { kind: "placed", position, numbered: false };
  const wanted = operation.kind === "unsubscribe" ? null : position ?? log.last;
  return { kind: "placed", position: wanted, numbered: order === "newer" };
}

export function decideSeek(seek: SeekOperation, subscriber: SubscriberState, log: LogState): PlaceDecision {
  const order = operationOrder(subscriber, seek.session, seek.op);
  if (order === "stale") return stale("seek", seek.op, subscriber);
  const { position } = subscriber;
  if (position === null) return refused("NOT_SUBSCRIBED", "this client is not subscribed to the topic");
  if (order === "repeated") return { kind: "placed", position, numbered: false };
  const wanted = seek.to === "start" ? log.first - 1 : seek.to === "end" ? log.last : seek.to;
  if (wanted > log.last) {
    return refused("BAD_REQUEST", `message ${wanted} was never given to anybody: ${log.last} is the newest`);
  }
  if (wanted < log.first - 1) {
    return refused("BAD_REQUEST", `message ${wanted + 1} is gone: ${log.first} is the oldest that is there`);
  }
  return { kind: "placed", position: wanted, numbered: order === "newer" };
}

function stale(what: string, op: number | null, { op: done }: SubscriberState): ReadRefusal {
  return refused("STALE_OP", `this ${what} is operation ${op}, and a newer one was done: ${done}`);
}

function refused(code: StatusCode, reason: string): ReadRefusal {
  return { kind: "refused", code, reason };
}

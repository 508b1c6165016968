/** Decides what a put does, from the stored state of its publisher and topic. Pure. */
import type { MessageIdRange } from "../../wire/field_types.ts";
import { type PutOperation, type RefusedOperation, refuseOperation } from "../operations/store_operations.ts";
import type { PublisherWindow } from "./publisher_window.ts";
import { isClientNumberTooHigh } from "./session_fence.ts";
import { messageOverheadBytes, putOverheadBytes, sessionWindowCountersMax } from "../limits/topic_store_limits.ts";

/** The stored state of publisher and topic from which a put is decided. */
export interface PutDecisionFacts {
  /** The window of the session in which the put's counters were first used; an empty window if none is stored. */
  readonly window: PublisherWindow;
  /** True if the session is too old to be remembered, or belongs to another client state. */
  readonly windowGone: boolean;
  readonly sameMsgId: { readonly id: number; readonly fingerprint: number } | null;
  readonly fingerprints: readonly number[];
  readonly last: number;
  /**
   * Returns the reason why nothing more can be stored; null if there is room. Called only if something would be stored.
   */
  readonly fullReason: (messages: number) => string | null;
}

export type PutDecision =
  | RefusedOperation
  /**
   * The put is stored. `bound` is the window's new bound. `newIndexes` are the indexes of the bodies to store, with IDs
   * from `last` + 1. `ids` has an ID for each body.
   */
  | {
    readonly kind: "done";
    readonly bound: number;
    readonly newIndexes: readonly number[];
    readonly ids: readonly number[];
  };

/** Decides whether a put is stored or refused; a batch is decided as a whole. */
export function decidePut(put: PutOperation, view: PutDecisionFacts): PutDecision {
  const { window, fingerprints } = view;
  const highest = put.counter + (fingerprints.length - 1);
  const wrong = refuseMalformed(put, highest) ?? refuseWithoutRoom(put, highest, window) ??
    (view.windowGone ? refuseForgottenSession(put) : null);
  if (wrong !== null) return wrong;
  const bound = window.boundFor(put.firstUnacked, highest);
  const ids: number[] = [];
  const newIndexes: number[] = [];
  for (let index = 0; index < fingerprints.length; index++) {
    const counter = put.counter + index;
    // Uses the bound before this request, because a request must not make its own counters stale.
    if (counter < window.firstUnacked) return refuseStale(counter, window.firstUnacked);
    const known = window.get(counter) ?? view.sameMsgId;
    if (known === null) {
      newIndexes.push(index);
      ids.push(view.last + newIndexes.length);
    } else if (known.fingerprint !== fingerprints[index]) return refuseReuse(put, counter, known.id);
    else ids.push(known.id);
  }
  if (newIndexes.length === 0) return { kind: "done", bound, newIndexes, ids };
  const early = refuseOutOfOrder(put, window);
  if (early !== null) return early;
  if (window.session !== 0 && window.size + newIndexes.length > sessionWindowCountersMax) {
    return refuseOperation(
      "BAD_REQUEST",
      `more than ${sessionWindowCountersMax} counters are at or above first-unacked ${bound}`,
    );
  }
  const full = view.fullReason(newIndexes.length);
  return full === null ? { kind: "done", bound, newIndexes, ids } : refuseOperation("FULL", full);
}

/** Returns the most bytes that a put may add to the store. */
export function countPutBytes({ bodies, client, msgId }: PutOperation): number {
  const each = messageOverheadBytes + 3 * (client.length + (msgId?.length ?? 0)); // names in UTF-8
  return bodies.reduce((sum, { byteLength }) => sum + byteLength + each, putOverheadBytes);
}

/** Converts message IDs to ranges; usually there is only one range. */
export function toMessageIdRanges(ids: readonly number[]): MessageIdRange[] {
  const ranges: MessageIdRange[] = [];
  let first = ids[0];
  for (let index = 1; first !== undefined && index <= ids.length; index++) {
    const before = ids[index - 1] as number;
    if (ids[index] === before + 1) continue;
    ranges.push({ first, last: before });
    first = ids[index];
  }
  return ranges;
}

function refuseMalformed(put: PutOperation, highest: number): PutDecision | null {
  if (put.bodies.length === 0) return refuseOperation("BAD_REQUEST", "a put needs at least one message");
  if (!Number.isSafeInteger(highest)) {
    return refuseOperation("BAD_REQUEST", `counter ${put.counter} is too large for its batch`);
  }
  if (put.firstUnacked > put.counter) {
    return refuseOperation("BAD_REQUEST", `first-unacked ${put.firstUnacked} is above the counter ${put.counter}`);
  }
  if (put.msgId !== null && put.bodies.length > 1) {
    return refuseOperation("BAD_REQUEST", "a msg-id is only allowed for a single message");
  }
  return null;
}

/**
 * Refuses a counter of a client without sessions if it would leave too few counters for the client's other programs.
 */
function refuseWithoutRoom(put: PutOperation, highest: number, window: PublisherWindow): PutDecision | null {
  if (put.session !== null || !isClientNumberTooHigh(highest, window.highest)) return null;
  return refuseOperation(
    "BAD_REQUEST",
    `counter ${highest} leaves no room for later ones; the last one was ${window.highest}`,
  );
}

function refuseOutOfOrder(put: PutOperation, window: PublisherWindow): PutDecision | null {
  const { after } = put;
  if (after === null || after < Math.max(window.firstUnacked, put.firstUnacked) || window.get(after) !== undefined) {
    return null;
  }
  return refuseOperation(
    "OVERLOADED",
    `counter ${after}, which must be stored before ${put.counter}, has not arrived yet`,
  );
}

function refuseForgottenSession(put: PutOperation): PutDecision {
  const number = put.fromSession?.number ?? 0;
  return refuseOperation("STALE_OP", `the puts of session ${number} are no longer remembered`, {
    failedAt: put.counter,
  });
}

function refuseStale(counter: number, firstUnacked: number): PutDecision {
  const reason = `counter ${counter} is below ${firstUnacked}: its outcome is no longer known`;
  return refuseOperation("STALE_OP", reason, { failedAt: counter });
}

function refuseReuse(put: PutOperation, counter: number, id: number): PutDecision {
  const what = put.msgId === null
    ? `counter ${counter}`
    : `counter ${counter} or the msg-id ${JSON.stringify(put.msgId)}`;
  return refuseOperation("COUNTER_REUSE", `${what} was used for another body, message ${id}`, { failedAt: counter });
}

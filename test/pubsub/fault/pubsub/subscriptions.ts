/** From when to when a client was subscribed to a topic, as far as it can know. Pure. */
import type { At, Operation } from "./history.ts";

export interface Subscription {
  /** When it was asked for: nothing that had been put by then belongs to it. */
  readonly begin: At;
  /** When it had been answered OK: all that is put from then on belongs to it. Infinity: it never was. */
  readonly mustFrom: At;
  /** When its end was asked for: what was not had by then may be given up. Infinity: it was not. */
  readonly endFrom: At;
  /** When its end was answered OK: nothing comes any more. Infinity: it was not. */
  readonly endBy: At;
  /** There was none before it: it may not have begun before `begin`. */
  readonly isSure: boolean;
  /** Of the process that asked for it: nothing that an older one got is of this subscription. */
  readonly session: number;
}

/** In the order of time. `operations`: of one client at one topic, in that order. */
export function subscriptionsOf(operations: readonly Operation[]): Subscription[] {
  const found: { -readonly [Key in keyof Subscription]: Subscription[Key] }[] = [];
  for (const { do: what, result: { outcome }, invokedAt, returnedAt, session } of inTheirOrder(operations)) {
    if (outcome === "fail") continue; // definitely not done
    const last = found.at(-1);
    const isOpen = last !== undefined && last.endFrom === Infinity;
    if (what === "subscribe") {
      const mustFrom = outcome === "ok" ? returnedAt : Infinity;
      if (isOpen) {
        last.mustFrom = Math.min(last.mustFrom, mustFrom);
        // A client that has lost its state begins with session 1 again.
        last.session = Math.min(last.session, session);
      } else {
        const isSure = last === undefined || last.endBy < invokedAt;
        found.push({ begin: invokedAt, mustFrom, endFrom: Infinity, endBy: Infinity, isSure, session });
      }
    } else if (what === "unsubscribe" && last !== undefined) {
      last.endFrom = Math.min(last.endFrom, invokedAt);
      if (outcome === "ok") last.endBy = Math.min(last.endBy, returnedAt);
    }
  }
  return found;
}

/**
 * As the server must have taken them: of two that were under way at once it took that of the older session first, since
 * it refuses an older one as soon as it knows the newer.
 */
function inTheirOrder(operations: readonly Operation[]): Operation[] {
  const ordered: Operation[] = [];
  for (const operation of operations) {
    let place = ordered.length;
    while (place > 0) {
      const { session, returnedAt } = ordered[place - 1] as Operation;
      if (session <= operation.session || returnedAt < operation.invokedAt) break;
      place--;
    }
    ordered.splice(place, 0, operation);
  }
  return ordered;
}

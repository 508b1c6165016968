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
}

/** In the order of time. `operations`: of one client at one topic, in that order. */
export function subscriptionsOf(operations: readonly Operation[]): Subscription[] {
  const found: { -readonly [Key in keyof Subscription]: Subscription[Key] }[] = [];
  for (const { do: what, result: { outcome }, invokedAt, returnedAt } of operations) {
    if (outcome === "fail") continue; // definitely not done
    const last = found.at(-1);
    const isOpen = last !== undefined && last.endFrom === Infinity;
    if (what === "subscribe") {
      const mustFrom = outcome === "ok" ? returnedAt : Infinity;
      if (isOpen) last.mustFrom = Math.min(last.mustFrom, mustFrom);
      else {
        const isSure = last === undefined || last.endBy < invokedAt;
        found.push({ begin: invokedAt, mustFrom, endFrom: Infinity, endBy: Infinity, isSure });
      }
    } else if (what === "unsubscribe" && last !== undefined) {
      last.endFrom = Math.min(last.endFrom, invokedAt);
      if (outcome === "ok") last.endBy = Math.min(last.endBy, returnedAt);
    }
  }
  return found;
}

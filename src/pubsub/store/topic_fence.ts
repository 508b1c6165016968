/** Whose request it is: the client's newest session, an older one, or a plain client's. And which of its operations is newer. Pure. */
import type { SessionToken } from "../../wire/pubsub/field_types.ts";

/** What is stored of a client's session. `session` is 0 before its first. */
export interface ClientSessionState {
  readonly session: number;
  readonly key: string;
}

export type FenceResult =
  /** Go on; with `raised` the session is newer than the stored one, and is to be stored. */
  | { readonly kind: "passed"; readonly raised: boolean }
  | { readonly kind: "fenced"; readonly reason: string };

/** A request without a session is never fenced. Two sessions of one number and two keys are of two states, copies of one or one begun anew: the first wins. */
export function fence(client: ClientSessionState, session: SessionToken | null): FenceResult {
  if (session === null) return { kind: "passed", raised: false };
  if (session.number > client.session) return { kind: "passed", raised: true };
  if (session.number === client.session && session.key === client.key) return { kind: "passed", raised: false };
  const reason = session.number < client.session
    ? `session ${session.number} of this client was taken over by session ${client.session}`
    : `session ${session.number} of this client is another state's: this one was copied, put back or lost`;
  return { kind: "fenced", reason };
}

/** The number of the last subscribe, unsubscribe or seek that was done, from 1 on, and the session it was done in. 0: none was. */
export interface OperationState {
  readonly op: number;
  readonly opSession: number;
}

/** Where a numbered operation stands to the last one that was done; `any` for one without a number. */
export function operationOrder(
  done: OperationState,
  session: SessionToken | null,
  op: number | null,
): "newer" | "repeated" | "stale" | "any" {
  if (op === null) return "any";
  const number = session?.number ?? 0;
  if (number !== done.opSession) return number > done.opSession ? "newer" : "stale";
  if (op === done.op && op > 0) return "repeated";
  return op >= done.op ? "newer" : "stale";
}

/**
 * Fences off the old sessions of a client: decides whether a request comes from the client's newest session, and
 * whether its operation is newer than the client's last one. Pure.
 */
import type { SessionToken } from "../../wire/field_types.ts";
import { clientNumberStepMax, unrestrictedClientNumberMax } from "../../wire/message_limits.ts";

/** The stored session of a client; `session` is 0 before the client's first session. */
export interface ClientSessionState {
  readonly session: number;
  readonly key: string;
}

export type SessionFenceResult =
  /**
   * The request may continue. `raised` is true if the request's session is newer than the stored session and must be
   * stored.
   */
  | { readonly kind: "passed"; readonly raised: boolean }
  | { readonly kind: "fenced"; readonly reason: string };

/**
 * Checks a request's session against the stored session. A request without a session is never fenced. Two client
 * states, such as a state and its copy, may use the same session number with different keys; the first state then wins.
 */
export function checkClientSession(client: ClientSessionState, session: SessionToken | null): SessionFenceResult {
  if (session === null) return { kind: "passed", raised: false };
  if (isClientNumberTooHigh(session.number, client.session)) {
    const why = `session ${session.number} leaves no room for later ones; the last one here was ${client.session}`;
    return { kind: "fenced", reason: why };
  }
  if (session.number > client.session) return { kind: "passed", raised: true };
  if (session.number === client.session && session.key === client.key) return { kind: "passed", raised: false };
  const reason = session.number < client.session
    ? `session ${session.number} of this client was taken over by session ${client.session}`
    : `session ${session.number} of this client belongs to another client state: this state was copied, ` +
      "restored or lost";
  return { kind: "fenced", reason };
}

/** Returns true if too few numbers would be left for a client that uses `number` after `last`. */
export function isClientNumberTooHigh(number: number, last: number): boolean {
  return number >
    Math.max(unrestrictedClientNumberMax, Math.min(last + clientNumberStepMax, Number.MAX_SAFE_INTEGER - 1));
}

/** The number and session of a client's last subscribe, unsubscribe or seek. Numbers start at 1; 0 means none. */
export interface LastClientOperation {
  readonly op: number;
  readonly opSession: number;
}

/**
 * Compares the number of an operation with the client's last operation. Returns `any` for an operation without a
 * number. Returns `no room` if a client without sessions would have too few numbers left.
 */
export function compareWithLastOperation(
  done: LastClientOperation,
  session: SessionToken | null,
  op: number | null,
): "newer" | "repeated" | "stale" | "any" | "no room" {
  if (op === null) return "any";
  const number = session?.number ?? 0;
  if (number === 0 && done.opSession === 0 && isClientNumberTooHigh(op, done.op)) return "no room";
  if (number !== done.opSession) return number > done.opSession ? "newer" : "stale";
  if (op === done.op && op > 0) return "repeated";
  return op >= done.op ? "newer" : "stale";
}

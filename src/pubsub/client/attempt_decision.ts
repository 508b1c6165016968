/** What comes after an attempt: the outcome, or another attempt. Pure; requester.ts does it. */
import { claimsNothingDone, type StatusCode } from "../../wire/pubsub/status_codes.ts";

/** How an attempt ended. */
export type AttemptResult =
  | { readonly kind: "response"; readonly status: StatusCode; readonly isUnknown: boolean }
  /** It was sent, and nothing came back. */
  | { readonly kind: "no response" }
  /** No proxy could be reached to send it to. */
  | { readonly kind: "not sent" };

export interface AttemptState {
  /** An unanswered attempt may have done something. */
  readonly changes: boolean;
  /** An earlier attempt may have been done. */
  readonly mayBeDone: boolean;
  /** Attempts so far, this one included. */
  readonly attempts: number;
  /** Attempts at most. */
  readonly attemptsMax: number;
  /** Milliseconds that are left. */
  readonly leftMs: number;
}

export type AttemptDecision =
  /** The answer is the outcome. */
  | { readonly do: "accept" }
  /** `elsewhere`: at the next proxy. */
  | { readonly do: "retry"; readonly elsewhere: boolean; readonly mayBeDone: boolean }
  /** `unknown`: it may have been done. */
  | { readonly do: "give up"; readonly outcome: "fail" | "unknown" };

/** A proxy that refuses so often in a row may have lost the servers that another one reaches. */
const samePlaceAttempts = 3;

export function afterAttempt(state: AttemptState, end: AttemptResult): AttemptDecision {
  const mayBeDone = state.mayBeDone ||
    (state.changes && (end.kind === "no response" || (end.kind === "response" && end.isUnknown)));
  if (end.kind === "response" && !isTemporary(end.status)) {
    const isDoubtful = state.mayBeDone && state.changes && claimsNothingDone.includes(end.status);
    return isDoubtful ? { do: "give up", outcome: "unknown" } : { do: "accept" };
  }
  if (state.leftMs <= 0 || state.attempts >= state.attemptsMax) {
    return { do: "give up", outcome: mayBeDone ? "unknown" : "fail" };
  }
  const isThere = end.kind === "response" && end.status !== "ERROR";
  return { do: "retry", elsewhere: !isThere || state.attempts % samePlaceAttempts === 0, mayBeDone };
}

/** A matter of a moment, or of another server. */
export function isTemporary(status: StatusCode): boolean {
  return status === "NOT_OWNER" || status === "OVERLOADED" || status === "ERROR";
}

export interface AttemptTimes {
  /** `wait-ms`: how long the server may hold the answer back. */
  readonly waitMs: number;
  /** `deadline-ms`: when the proxy has to have answered. */
  readonly deadlineMs: number;
}

/** What is left of a try's time for its answer to arrive, at most. */
const answerMsMax = 250;

/** `withinMs`: until nobody waits for the answer. `attemptMs`: what it may take beside `holdMs`. */
export function attemptTimes(
  { withinMs, attemptMs, holdMs }: { readonly withinMs: number; readonly attemptMs: number; readonly holdMs: number },
): AttemptTimes {
  // Where little is left, the wait is cut, not the way: "no message" is an answer, and silence is none.
  const waitMs = Math.max(0, Math.min(holdMs, Math.floor(withinMs - attemptMs)));
  // The proxy's last word has to arrive while it is waited for: it says what silence cannot.
  return { waitMs, deadlineMs: Math.ceil(withinMs - Math.min(answerMsMax, (withinMs - waitMs) / 4)) };
}

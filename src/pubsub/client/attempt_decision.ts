/** Decides what follows a try: the outcome, or another try. Pure; requester.ts executes the decision. */
import { codesOfNothingDone, type StatusCode } from "../wire/status_codes.ts";

/** Result of one try. */
export type RequestAttemptResult =
  | { readonly kind: "response"; readonly status: StatusCode; readonly isUnknown: boolean }
  /** The request was sent, and no response arrived. */
  | { readonly kind: "no response" }
  /** The request was not sent, because no proxy could be reached. */
  | { readonly kind: "not sent" };

export interface RequestAttemptState {
  /** The request changes something, so that a try without a response may have had an effect. */
  readonly changesState: boolean;
  /** An earlier try may have been executed. */
  readonly mayBeDone: boolean;
  /** Number of tries, including this one. */
  readonly attempts: number;
  /** Maximum number of tries. */
  readonly attemptsMax: number;
  /** Milliseconds left. */
  readonly leftMs: number;
}

export type RequestAttemptDecision =
  /** The response is the outcome. */
  | { readonly do: "accept" }
  /** `elsewhere`: try the next proxy. */
  | { readonly do: "retry"; readonly elsewhere: boolean; readonly mayBeDone: boolean }
  /** `unknown`: the request may have been executed. */
  | { readonly do: "give up"; readonly outcome: "fail" | "unknown" };

/** Refusals in a row before the next proxy is tried: this one may have lost servers that another proxy reaches. */
const attemptsPerProxy = 3;

export function decideAfterRequestAttempt(
  state: RequestAttemptState,
  end: RequestAttemptResult,
): RequestAttemptDecision {
  const mayBeDone = state.mayBeDone ||
    (state.changesState && (end.kind === "no response" || (end.kind === "response" && end.isUnknown)));
  if (end.kind === "response" && !isTemporaryStatus(end.status)) {
    const isDoubtful = state.mayBeDone && state.changesState && codesOfNothingDone.includes(end.status);
    return isDoubtful ? { do: "give up", outcome: "unknown" } : { do: "accept" };
  }
  if (state.leftMs <= 0 || state.attempts >= state.attemptsMax) {
    return { do: "give up", outcome: mayBeDone ? "unknown" : "fail" };
  }
  const isThere = end.kind === "response" && end.status !== "ERROR";
  return { do: "retry", elsewhere: !isThere || state.attempts % attemptsPerProxy === 0, mayBeDone };
}

/** Returns whether the status is temporary, or another server may respond differently. */
function isTemporaryStatus(status: StatusCode): boolean {
  return status === "NOT_OWNER" || status === "OVERLOADED" || status === "ERROR";
}

export interface RequestAttemptTimes {
  /** `wait-ms`: how long the server may wait for a message. */
  readonly waitMs: number;
  /** `deadline-ms`: when the proxy has to have responded. */
  readonly deadlineMs: number;
}

/** Milliseconds: the maximum part of a try that is reserved for its response to arrive. */
const responseMsReserved = 250;

/**
 * Divides the time of a try. `withinMs`: how long the response is awaited. `attemptMs`: what the try may take in
 * addition to `holdMs`.
 */
export function divideRequestAttemptTime(
  { withinMs, attemptMs, holdMs }: { readonly withinMs: number; readonly attemptMs: number; readonly holdMs: number },
): RequestAttemptTimes {
  // If little time is left, the wait at the server is shortened, not the time for the response: NO_MESSAGE is an
  // outcome, silence is not.
  const waitMs = Math.max(0, Math.min(holdMs, Math.floor(withinMs - attemptMs)));
  // The last response of the proxy has to arrive in time, because it says whether the request was executed.
  return { waitMs, deadlineMs: Math.ceil(withinMs - Math.min(responseMsReserved, (withinMs - waitMs) / 4)) };
}

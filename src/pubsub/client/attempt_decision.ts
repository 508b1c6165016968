/** Decides after each try of a request whether the client tries again. Pure; requester.ts carries out the decision. */
import { nothingDoneStatusCodes, type StatusCode } from "../wire/status_codes.ts";

export type RequestAttemptResult =
  | { readonly kind: "response"; readonly status: StatusCode; readonly isUnknown: boolean }
  /** The request was sent, but no response arrived. */
  | { readonly kind: "no response" }
  /** The request was not sent, because no proxy was reachable. */
  | { readonly kind: "not sent" };

export interface RequestAttemptState {
  /** True if the request changes something. A try without a response may then have had an effect. */
  readonly changesState: boolean;
  /** True if a server may have executed an earlier try. */
  readonly mayBeDone: boolean;
  /** The number of tries, including this one. */
  readonly attempts: number;
  readonly attemptsMax: number;
  readonly leftMs: number;
}

export type RequestAttemptDecision =
  | { readonly do: "accept" }
  /** The client must try again. If `elsewhere` is true, the next try goes to another proxy. */
  | { readonly do: "retry"; readonly elsewhere: boolean; readonly mayBeDone: boolean }
  /** The client must stop trying. `unknown` means that a server may have executed the request. */
  | { readonly do: "give up"; readonly outcome: "fail" | "unknown" };

/**
 * The number of refusals in a row after which the client tries the next proxy. The next proxy may reach other servers.
 */
const attemptsPerProxy = 3;

export function decideAfterRequestAttempt(
  state: RequestAttemptState,
  end: RequestAttemptResult,
): RequestAttemptDecision {
  const mayBeDone = state.mayBeDone ||
    (state.changesState && (end.kind === "no response" || (end.kind === "response" && end.isUnknown)));
  if (end.kind === "response" && !isTemporaryStatus(end.status)) {
    const isDoubtful = state.mayBeDone && state.changesState && nothingDoneStatusCodes.includes(end.status);
    return isDoubtful ? { do: "give up", outcome: "unknown" } : { do: "accept" };
  }
  if (state.leftMs <= 0 || state.attempts >= state.attemptsMax) {
    return { do: "give up", outcome: mayBeDone ? "unknown" : "fail" };
  }
  const isThere = end.kind === "response" && end.status !== "ERROR";
  return { do: "retry", elsewhere: !isThere || state.attempts % attemptsPerProxy === 0, mayBeDone };
}

/** Returns true if the status is temporary, or if another server may respond differently. */
function isTemporaryStatus(status: StatusCode): boolean {
  return status === "NOT_OWNER" || status === "OVERLOADED" || status === "ERROR";
}

export interface RequestAttemptTimes {
  /** `wait-ms`: how long the server may wait for a message. */
  readonly waitMs: number;
  /** `deadline-ms`: the time by which the proxy must have responded. */
  readonly deadlineMs: number;
}

/** The most milliseconds of a try that are reserved for the way of the response to the client. */
const responseMsReserved = 250;

/**
 * Divides the time of a try into two parts: time for the server to wait for a message, and time for the response to
 * arrive. The client waits `withinMs` in total. `holdMs` is the time that the client wants the server to wait;
 * `attemptMs` is for everything else.
 */
export function divideRequestAttemptTime(
  { withinMs, attemptMs, holdMs }: { readonly withinMs: number; readonly attemptMs: number; readonly holdMs: number },
): RequestAttemptTimes {
  // If little time is left, shortens the wait at the server, so that the response NO_MESSAGE still arrives.
  const waitMs = Math.max(0, Math.min(holdMs, Math.floor(withinMs - attemptMs)));
  // The proxy's last response must arrive in time, because it says whether the request was executed.
  return { waitMs, deadlineMs: Math.ceil(withinMs - Math.min(responseMsReserved, (withinMs - waitMs) / 4)) };
}

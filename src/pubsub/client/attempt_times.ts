/** How one attempt divides its time: waiting for a message at the server, and the way there and back. Pure. */

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

/** What follows the end of a term: the end, or another campaign and when. Pure. */
import type { ChildOutcome } from "../../src/process/spawn/child_outcome.ts";
import type { RestartMode } from "./elect_options.ts";

export interface TermFacts {
  readonly restart: RestartMode;
  readonly outcome: Pick<ChildOutcome, "kind" | "heldMs">;
  /** The signals that baton was sent in this term. */
  readonly signals: ReadonlySet<string>;
  /** Its health made it give up. */
  readonly isUnwell: boolean;
  /** Terms before this one that ended soon, in a row, by the command's own doing. */
  readonly shortTerms: number;
}

export type NextStep =
  | { readonly do: "end" }
  | { readonly do: "campaign"; readonly pauseMs: number; readonly shortTerms: number };

/** Milliseconds. */
export const pauseMsMin = 1000;
export const pauseMsMax = 30_000;
/** A term of this length has not ended soon. Milliseconds. */
export const longTermMs = 30_000;

/** These ask baton to end. Others are the command's alone: many a service reads its configuration again at SIGHUP. */
const askForEnd = ["SIGTERM", "SIGINT", "SIGQUIT"] as const;

export function afterTerm({ restart, outcome, signals, isUnwell, shortTerms }: TermFacts): NextStep {
  const { kind, heldMs } = outcome;
  if (askForEnd.some((signal) => signals.has(signal)) || restart === "never") return { do: "end" };
  const again = (pauseMs: number, short = 0): NextStep => ({ do: "campaign", pauseMs, shortTerms: short });
  const short = heldMs < longTermMs ? shortTerms + 1 : 0;
  // Doubled from term to term; a long one begins anew.
  const backoffMs = Math.min(pauseMsMax, pauseMsMin * 2 ** Math.min(Math.max(0, short - 1), 10));
  switch (kind) {
    case "lost":
      // Lost before it was of use: whatever it was may still be so.
      return heldMs < pauseMsMin ? again(backoffMs, short) : again(0);
    case "revoked":
      // Whoever waits is in the queue; without a pause the one that stepped down could be faster, by its priority.
      return isUnwell ? again(backoffMs, short) : again(pauseMsMin);
    case "exited":
    case "signaled":
      return restart === "always" && !signals.has("SIGHUP") ? again(backoffMs, short) : { do: "end" };
    default:
      // A command that is not there, a breach: another term would not mend it.
      return { do: "end" };
  }
}

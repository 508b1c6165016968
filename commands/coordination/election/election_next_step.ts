/** Decides what `baton elect` does after a term: exit, or stand for election again after a pause. Pure. */
import type { ChildOutcome } from "../../../src/base/process/spawn/child_outcome.ts";
import type { ElectRestartMode } from "./elect_options.ts";

export interface EndedElectionTerm {
  readonly restart: ElectRestartMode;
  readonly outcome: Pick<ChildOutcome, "kind" | "heldMs"> & { readonly isDead?: boolean };
  /** The signals that baton received in this term. */
  readonly signals: ReadonlySet<string>;
  /** True if the --health check has ended the term. */
  readonly isUnhealthy: boolean;
  /** The number of consecutive short terms before this term, each ended by the command. */
  readonly shortTerms: number;
}

export type ElectionNextStep =
  | { readonly do: "end" }
  | { readonly do: "campaign"; readonly pauseMs: number; readonly shortTerms: number };

/** The shortest and longest pause between two terms, in milliseconds. */
export const electionPauseMsMin = 1000;
export const electionPauseMsMax = 30_000;
/** A term that is shorter than this, in milliseconds, makes the next pause longer. */
export const longElectionTermMs = 30_000;

/**
 * The signals that stop baton. Other signals are only for the command: many services reload their configuration at
 * SIGHUP.
 */
const askForEnd = ["SIGTERM", "SIGINT", "SIGQUIT"] as const;

export function decideElectionNextStep(
  { restart, outcome, signals, isUnhealthy, shortTerms }: EndedElectionTerm,
): ElectionNextStep {
  const { kind, heldMs } = outcome;
  if (askForEnd.some((signal) => signals.has(signal)) || restart === "never") return { do: "end" };
  const again = (pauseMs: number, short = 0): ElectionNextStep => ({ do: "campaign", pauseMs, shortTerms: short });
  const short = heldMs < longElectionTermMs ? shortTerms + 1 : 0;
  // The pause doubles with each short term; a long term resets it.
  const backoffMs = Math.min(electionPauseMsMax, electionPauseMsMin * 2 ** Math.min(Math.max(0, short - 1), 10));
  // If `isDead` is true, the processes died too late, because the machine was suspended. They are dead now, as after
  // any other loss.
  switch (kind === "breach" && outcome.isDead ? "lost" : kind) {
    case "lost":
      // A term that was lost immediately may be lost again for the same reason, so a pause follows.
      return heldMs < electionPauseMsMin ? again(backoffMs, short) : again(0);
    case "revoked":
      // The pause lets another candidate lead. Without it, this candidate's priority could put it first in the queue
      // again.
      return isUnhealthy ? again(backoffMs, short) : again(electionPauseMsMin);
    case "exited":
    case "signaled":
      return restart === "always" && !signals.has("SIGHUP") ? again(backoffMs, short) : { do: "end" };
    default:
      // Another term would not help if the command is missing or could not be stopped.
      return { do: "end" };
  }
}

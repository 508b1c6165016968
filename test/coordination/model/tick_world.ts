/** The state of the model of ticks, and the mistakes that it can make. */
import type { TickCommandResult, TickDecision, TickProgress } from "../../../src/coordination/tick/tick_decision.ts";

export const tickMistakes = {
  ownClock: "takes the tick from the host's own clock",
  lateClaim: "claims in a second write after the grant, without the node's version",
  noTickVersion: "claims without the version of the schedule's node",
  noLookAfterLost: "treats an unanswered claim as refused",
  endAfterRelease: "releases first, and writes the end afterwards",
  noGap: "moves the mark without recording the gap",
  claimIsDone: "takes a claim for a run, and forgets what died",
  alwaysRetry: "claims again whatever is open, without --retry",
  endOverSkip: "writes the end over a skip that came meanwhile",
  sweepBlind: "clears old schedules without the version",
  ttlLock: "locks for a fixed time instead of a session",
  blindSkip: "records a skip without the version",
  skipsBehind: "skips a tick because another contender is ahead, although no command runs",
  retryFirst: "tries an old tick again before the newer one that is due",
  givesBackStarted: "gives back a tick whose command has started",
  forgetsGivenBack: "takes a newer tick without recording that one that was given back did not run",
} as const;
export type TickMistake = keyof typeof tickMistakes;

export interface TickModelOptions {
  /** Ticks are 1 to this; the server's clock starts at 1. */
  readonly ticks: number;
  /** Number of calls of each host. */
  readonly calls: readonly number[];
  readonly faultsMax: number;
  /** True: one of the faults is a call that is stopped while its claim is on its way. */
  readonly stops?: boolean;
  /** How often the leader's clock steps back. */
  readonly stepsBack?: number;
  readonly retriesMax?: number;
  /** How often old nodes are cleared. */
  readonly sweeps?: number;
  /** Offset of each host's clock; only a mistake reads it. */
  readonly skew?: readonly number[];
  /** True: a call waits for a busy lock. */
  readonly waits?: boolean;
  /** Ticks later than this are not begun; no limit when left out. */
  readonly lateMax?: number;
  readonly mistake?: TickMistake;
}

export interface TickNode extends TickProgress {
  readonly v: number;
}
export interface LockNode {
  readonly v: number;
  readonly holder: string | null;
}
export type Want = Extract<TickDecision, { readonly do: "claim" | "skip" | "settle" }>;

export interface Caller {
  at:
    | "idle"
    | "read tick"
    | "read lock"
    | "claim"
    | "grant"
    | "late claim"
    | "recover claim"
    | "give back"
    | "run"
    | "release"
    | "end"
    | "recover end"
    | "skip"
    | "settle";
  calls: number;
  guid: string;
  tick: TickNode | null;
  lock: LockNode;
  want: Want | null;
  result: TickCommandResult;
  /** Version of the schedule's node that the end expects. */
  endVersion: number;
}

export interface TickWorld {
  now: number;
  stepsBack: number;
  faults: number;
  sweeps: number;
  /** The version that a sweep has read. */
  sweep: number | null;
  lock: LockNode;
  tick: TickNode | null;
  records: string[];
  /** Ticks up to this one need no record: the schedule was not registered, or was cleared. */
  floor: number;
  started: Record<number, number>;
  completed: Record<number, number>;
  callers: Caller[];
  /** Sessions of killed hosts, which hold the lock until they expire. */
  ghosts: string[];
  sessions: number;
  wrong: string | null;
}

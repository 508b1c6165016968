/** One operation of a history, and what a model says about operations. Types only. */
import type { z } from "zod";

/**
 * ok: the service answered, also with a refusal. fail: certainly not executed. unknown: everything else, also an
 * operation without a response; it may take effect at any later time, or never.
 */
export type OperationOutcome = "ok" | "fail" | "unknown";

export interface HistoryOperation {
  /** The name of the model that judges it. */
  readonly model: string;
  /** A client has one operation at a time. After an unknown change it continues under another name. */
  readonly client: string;
  readonly session?: string;
  readonly do: string;
  /** The objects that it is about; more than one in a transaction. */
  readonly keys: readonly string[];
  readonly input: Readonly<Record<string, unknown>>;
  /** Milliseconds of one monotonic clock: the call, and its response (Infinity without one). */
  readonly from: number;
  readonly to: number;
  readonly outcome: OperationOutcome;
  /** Null when the outcome is not ok. */
  readonly output: Readonly<Record<string, unknown>> | null;
}

/** A place in the service's own order of changes, such as a zxid or a message ID. */
export interface Witness {
  readonly at: number;
  /** change: the operation has this place. observation: it shows the state after the change with this place. */
  readonly kind: "change" | "observation";
}

/** An object as a sequential program. States are immutable. */
export interface CheckerModel<State = unknown> {
  readonly name: string;
  /** Accepts `{ do, input, output }` of each operation; output is null unless the outcome is ok. */
  readonly shape: z.ZodType;
  initial(): State;
  /**
   * The state after the operation; the same object when nothing changes; null when its response is impossible in this
   * state. An operation without output returns a state always: it has the effect that it has here, which may be none.
   */
  step(state: State, operation: HistoryOperation): State | null;
  /** Equal for equal states only. */
  key(state: State): string;
  /** False for an operation that changes nothing: without a response it is left out. */
  readonly mayMatter: (operation: HistoryOperation) => boolean;
  /**
   * The same operations with what other responses show of them, and without differences that no response shows. Must
   * not change the verdict.
   */
  readonly simplified?: (operations: readonly HistoryOperation[]) => readonly HistoryOperation[];
  /** Whether an operation of unknown outcome can change nothing in this state, and in no later one. */
  readonly isSpent?: (state: State, operation: HistoryOperation) => boolean;
  /** A read that may show a past state, but nothing older than what its client has seen. */
  readonly isStale?: (operation: HistoryOperation) => boolean;
  /** Null where the response does not name its place. */
  readonly witness?: (operation: HistoryOperation) => Witness | null;
  /** A state in a message. */
  describe(state: State): string;
}

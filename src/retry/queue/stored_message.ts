/** Types of a stored message. */
import type { StatementError } from "../../base/postgres/statement_error.ts";
import type { MessageLife, TryEnd } from "./message_life.ts";

/** Everything that was stored with a message except its body. */
export type MessageHead =
  /** The command of a message. `argv` and `cwd` are null if `run --exec` names the command. */
  | { readonly kind: "command"; readonly argv: readonly string[] | null; readonly cwd: string | null }
  /**
   * The request of a message. `path` starts with a slash and includes the query. Headers keep their order. If `origin`
   * is missing, `run --url` names the backend.
   */
  | {
    readonly kind: "http";
    readonly origin?: string;
    readonly method: string;
    readonly path: string;
    readonly headers: readonly (readonly [string, string])[];
  };

/** The steps of a dead letter on its way to a sink. */
export const forwardStates = ["none", "pending", "sending", "forwarded"] as const;

/**
 * The way of a message that dies: `kept` stays in the store, because the user said so; `open` is sent by any process of
 * the store that has a sink; `pending` is to be sent, and commands say so until it is.
 */
export type NewLetters = "kept" | "open" | "pending";

export interface StoredMessage extends Omit<MessageLife, "nextAtMs"> {
  readonly seq: number;
  /** The name of the store and the number of the message, which are unique among all stores. */
  readonly id: string;
  readonly key: string | null;
  /** When the message was accepted, in milliseconds of the wall clock. The times below have the same unit. */
  readonly firstMs: number;
  /** When the last try ended; null if there was none. */
  readonly lastMs: number | null;
  /** When the next try is due; null if there is none. */
  readonly nextMs: number | null;
  readonly error: string | null;
  readonly forwardState: (typeof forwardStates)[number] | "kept";
  /** The last error of a pending dead letter. */
  readonly forwardError: string | null;
  /** The size of the body in bytes. */
  readonly bytes: number;
}

/** A message that a processor has claimed, with its content. `fence` is the fencing number of the claim. */
export interface ClaimedMessage extends StoredMessage {
  readonly head: MessageHead;
  readonly body: Uint8Array;
}

export interface NewMessage {
  readonly head: MessageHead;
  readonly body: Uint8Array;
  readonly key: string | null;
  /** The first try, which failed before the message was stored; null if the message was not tried yet. */
  readonly tried: FirstTry | null;
}

export interface FirstTry extends TryEnd {
  readonly outcome: "retry" | "final";
  /** The last error of the message, as commands show it. */
  readonly error: string;
}

export interface StateTotals {
  readonly count: number;
  readonly bytes: number;
}

/**
 * Returns true if messages of a failed `accept` may be stored nevertheless: a disk may have written them before it
 * failed.
 */
export function mayBeStored(error: unknown): boolean {
  const { code, outcome } = error as Partial<StatementError>;
  return code === "OUTCOME_UNKNOWN" || (code === "IO" && outcome !== "rolled_back");
}

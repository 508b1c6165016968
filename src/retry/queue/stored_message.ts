/** Types of a stored message. */
import type { StatementError } from "../../base/postgres/statement_error.ts";
import type { MessageLife, TryEnd } from "./message_life.ts";

/** The data of a message without its body. */
export type MessageHead =
  /** Arguments of a command and its working directory. They are null if `run --exec` names the command. */
  | { readonly kind: "command"; readonly argv: readonly string[] | null; readonly cwd: string | null }
  /**
   * `path` starts with a slash and includes the query. Headers keep their order. Without `origin`, `run --url` names
   * the backend.
   */
  | {
    readonly kind: "http";
    readonly origin?: string;
    readonly method: string;
    readonly path: string;
    readonly headers: readonly (readonly [string, string])[];
  };

/** How far a dead letter is forwarded to a sink. */
export const forwardStates = ["none", "pending", "sending", "forwarded"] as const;

export interface StoredMessage extends Omit<MessageLife, "nextAtMs"> {
  readonly seq: number;
  /** The name of the store and the number of the message. Unique among all stores. */
  readonly id: string;
  readonly key: string | null;
  /** The time when the message was accepted, in ms of the wall clock like the times below. */
  readonly firstMs: number;
  /** The end of the last try, or null if there was none. */
  readonly lastMs: number | null;
  /** The time of the next try, or null if there is none. */
  readonly nextMs: number | null;
  readonly error: string | null;
  readonly forwardState: (typeof forwardStates)[number];
  /** The last error of a pending dead letter. */
  readonly forwardError: string | null;
  /** Size of the body in bytes. */
  readonly bytes: number;
}

/** A claimed message with its content; `fence` is the fencing number of the claim. */
export interface ClaimedMessage extends StoredMessage {
  readonly head: MessageHead;
  readonly body: Uint8Array;
}

export interface NewMessage {
  readonly head: MessageHead;
  readonly body: Uint8Array;
  readonly key: string | null;
  /** The failed first try, or null if the message was not tried yet. */
  readonly tried: FirstTry | null;
}

export interface FirstTry extends TryEnd {
  readonly outcome: "retry" | "final";
  /** The last error that the message shows. */
  readonly error: string;
}

export interface StateTotals {
  readonly count: number;
  readonly bytes: number;
}

/**
 * Returns whether messages of a failed `accept` may be stored nevertheless. A disk may have written them before it
 * failed.
 */
export function mayBeStored(error: unknown): boolean {
  const { code, outcome } = error as Partial<StatementError>;
  return code === "OUTCOME_UNKNOWN" || (code === "IO" && outcome !== "rolled_back");
}

/** Types of a stored message. */
import type { StatementError } from "../../base/postgres/statement_error.ts";
import type { MessageLife, TryEnd } from "./message_life.ts";

/** The data of a message besides its body. */
export type MessageHead =
  /** Arguments of a command and its working directory; null: `run --exec` names the command. */
  | { readonly kind: "command"; readonly argv: readonly string[] | null; readonly cwd: string | null }
  /**
   * `path` starts with a slash and includes the query; headers are in their order. Without `origin`, `run --url` names
   * the backend.
   */
  | {
    readonly kind: "http";
    readonly origin?: string;
    readonly method: string;
    readonly path: string;
    readonly headers: readonly (readonly [string, string])[];
  };

/** The state of a dead letter that is forwarded to a sink. */
export const forwardStates = ["none", "pending", "sending", "forwarded"] as const;

export interface StoredMessage extends Omit<MessageLife, "nextAtMs"> {
  readonly seq: number;
  /** The store's name and the message's number; unique everywhere. */
  readonly id: string;
  readonly key: string | null;
  /** The time when the message was accepted. Wall clock in milliseconds, as all times below. */
  readonly firstMs: number;
  /** The end of the last try; null: there was none. */
  readonly lastMs: number | null;
  /** The time of the next try; null: there is none. */
  readonly nextMs: number | null;
  readonly error: string | null;
  readonly forwardState: (typeof forwardStates)[number];
  /** The last error of a pending dead letter. */
  readonly forwardError: string | null;
  /** Size of the body. */
  readonly bytes: number;
}

/** A message that is to be tried, under its fencing number. */
export interface ClaimedMessage extends StoredMessage {
  readonly head: MessageHead;
  readonly body: Uint8Array;
}

export interface NewMessage {
  readonly head: MessageHead;
  readonly body: Uint8Array;
  readonly key: string | null;
  /** The failed first try; null: the message was not tried yet. */
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
 * Whether the messages of an `accept` that has failed may be stored: a disk may have what was written before it failed.
 */
export function mayBeStored(error: unknown): boolean {
  const { code, outcome } = error as Partial<StatementError>;
  return code === "OUTCOME_UNKNOWN" || (code === "IO" && outcome !== "rolled_back");
}

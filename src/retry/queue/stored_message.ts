/** A message as the store has it, for those who ask. */
import type { DeathReason, MessageState } from "./message_life.ts";

/** What a message is to be sent with, beside its body. */
export type MessageHead =
  /** A command's words and the folder it ran in; null: `run --exec` says what to run. */
  | { readonly kind: "command"; readonly argv: readonly string[] | null; readonly cwd: string | null }
  /** The path begins with a slash and has the query; headers in their order. */
  | {
    readonly kind: "http";
    readonly method: string;
    readonly path: string;
    readonly headers: readonly (readonly [string, string])[];
  };

/** Where a dead letter is that has another place to go than the store. */
export type ForwardState = "none" | "pending" | "sending" | "forwarded";
export const forwardStates: readonly ForwardState[] = ["none", "pending", "sending", "forwarded"];

export interface StoredMessage {
  readonly seq: number;
  /** The store's name and the number: nobody else's, ever. */
  readonly id: string;
  readonly state: MessageState;
  readonly key: string | null;
  readonly tries: number;
  readonly crashes: number;
  readonly fence: number;
  /** When it was accepted. Wall clock, milliseconds, as all that follow. */
  readonly firstMs: number;
  /** When it was accepted or redriven last. */
  readonly sinceMs: number;
  /** The end of its last try; null: there was none. */
  readonly lastMs: number | null;
  /** When the next try is due; null where there will be none. */
  readonly nextMs: number | null;
  readonly reason: DeathReason | null;
  readonly error: string | null;
  readonly forwardState: ForwardState;
  /** What was in the way of a letter that is owed, the last time. */
  readonly forwardError: string | null;
  /** Of the body. */
  readonly bytes: number;
}

/** One that is to be tried, under its fencing number. */
export interface ClaimedMessage extends StoredMessage {
  readonly head: MessageHead;
  readonly body: Uint8Array;
}

export interface NewMessage {
  readonly head: MessageHead;
  readonly body: Uint8Array;
  readonly key: string | null;
  /** Its first try, which has failed; null: there was none yet. */
  readonly tried: FirstTry | null;
}

export interface FirstTry {
  readonly outcome: "retry" | "final";
  readonly retryAfterMs: number | null;
  /** For `lastError`. */
  readonly error: string;
}

export interface StateTotals {
  readonly count: number;
  readonly bytes: number;
}

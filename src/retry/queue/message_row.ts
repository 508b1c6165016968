/** Reads the rows of messages. Stores in folders and in databases use the same column names and numbers. */
import type { DatabaseRow } from "../../base/storage/sql_row.ts";
import {
  type DeathReason,
  lifeAfterChange,
  type MessageChange,
  type MessageLife,
  type MessageState,
  messageStates,
} from "./message_life.ts";
import { claimBytesMax } from "./retry_store_limits.ts";
import { forwardStates, type NewLetters, type StoredMessage } from "./stored_message.ts";

/** States in which the body is stored. Messages in these states count towards the limits. */
export const statesWithBody: readonly MessageState[] = ["waiting", "in_flight", "dead"];
export const stateNumbers = Object.fromEntries(messageStates.map((state, at) => [state, at])) as Record<
  MessageState,
  number
>;

export function messageStateInRow(row: DatabaseRow): MessageState {
  return messageStates[Number(row["state"])] ?? "waiting";
}

export function messageLifeInRow(row: DatabaseRow): MessageLife {
  return {
    state: messageStateInRow(row),
    tries: Number(row["tries"]),
    crashes: Number(row["crashes"]),
    fence: Number(row["fence"]),
    sinceMs: Number(row["since_ms"]),
    nextAtMs: Number(row["next_ms"]),
    reason: row["reason"] as DeathReason | null,
  };
}

/** Makes a message from its row and from `rest`, the values that are not in the row. */
export function messageOfRow(row: DatabaseRow, rest: Pick<StoredMessage, "id" | "forwardError">): StoredMessage {
  const { nextAtMs, ...life } = messageLifeInRow(row);
  return {
    ...life,
    ...rest,
    seq: Number(row["seq"]),
    key: textInRow(row["key"]),
    firstMs: Number(row["first_ms"]),
    lastMs: row["last_ms"] === null ? null : Number(row["last_ms"]),
    nextMs: life.state === "waiting" ? nextAtMs : null,
    error: textInRow(row["error"]),
    forwardState: forwardStateOf(row),
    bytes: Number(row["bytes"]),
  };
}

/** The numbers of the column `forwarding`. A letter that is kept has none of `forwardStates`. */
const newLetterNumbers = { kept: -1, open: 0, pending: 1 } as const satisfies Record<NewLetters, number>;

/** Returns the column `forwarding` of a message that has reached this life. A damaged dead letter is never sent. */
export function forwardingOfLife({ state, reason }: MessageLife, letters: NewLetters): number {
  return state === "dead" && reason !== "damaged" ? newLetterNumbers[letters] : 0;
}

export function isPendingLetter(row: DatabaseRow): boolean {
  return messageStateInRow(row) === "dead" && ["pending", "sending"].includes(forwardStateOf(row));
}

/** Returns true if the content of the message must stay stored. */
export function keepsContent(row: DatabaseRow): boolean {
  return statesWithBody.includes(messageStateInRow(row)) && forwardStateOf(row) !== "forwarded";
}

/** Returns the state of the message after an operator's change; null if this change is not possible. */
export function changedMessageLife(row: DatabaseRow, change: MessageChange, nowMs: number): MessageLife | null {
  if (change === "redrive" && forwardStateOf(row) === "forwarded") return null;
  return lifeAfterChange(messageLifeInRow(row), change, nowMs);
}

/** Returns the state that makes an operator's change impossible. */
export function stateOfUnchangedMessage(row: DatabaseRow): MessageState | "forwarded" {
  return forwardStateOf(row) === "forwarded" ? "forwarded" : messageStateInRow(row);
}

/** Returns the number of a message from its ID, which may include the name of the store. Returns null for other IDs. */
export function messageNumberOfId(id: string, storeName: string): number | null {
  const prefix = `${storeName}-`;
  const number = /^\d{1,15}$/.exec(id.startsWith(prefix) ? id.slice(prefix.length) : id)?.[0];
  return number === undefined ? null : Number(number);
}

/** Returns the first row, and as many of the next rows as fit into a claim. */
export function limitRowsByBytes<Row extends DatabaseRow>(rows: readonly Row[]): readonly Row[] {
  let bytes = 0;
  const end = rows.findIndex((row, at) => (bytes += Number(row["bytes"])) > claimBytesMax && at > 0);
  return end < 0 ? rows : rows.slice(0, end);
}

/** Reads a text. A database stores texts as bytes, because they may contain any character. */
export function textInRow(value: unknown): string | null {
  if (typeof value === "string") return value;
  return value instanceof Buffer ? value.toString() : null;
}

function forwardStateOf(row: DatabaseRow): StoredMessage["forwardState"] {
  const number = Number(row["forwarding"]);
  return number === newLetterNumbers.kept ? "kept" : forwardStates[number] ?? "none";
}

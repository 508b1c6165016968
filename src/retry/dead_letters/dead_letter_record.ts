/**
 * Messages as JSON; a dead letter as one line with all its data except credentials, for a file, a program or another
 * store. Pure.
 */
import type { ListedMessageRow } from "../../base/rows/store_row.ts";
import type { ClaimedMessage, MessageHead, StoredMessage } from "../queue/stored_message.ts";
import { redactHead, type Redaction, redactText } from "./redaction.ts";

/** The row of a message. `name`: the name of the store. */
export function messageRow(message: StoredMessage, name: string): ListedMessageRow {
  const { id, state, key, tries, crashes, reason, bytes } = message;
  return {
    id,
    name,
    state,
    key,
    tries,
    crashes,
    reason,
    last_error: message.error,
    first_at: new Date(message.firstMs).toISOString(),
    last_at: instantOrNull(message.lastMs),
    next_at: instantOrNull(message.nextMs),
    bytes,
    forwarding: message.forwardState,
    forwarding_error: message.forwardError,
  };
}

/** UTC, from milliseconds of the wall clock. */
export function instantOrNull(atMs: number | null): string | null {
  return atMs === null ? null : new Date(atMs).toISOString();
}

/** Null in `command`: the message has no command of its own; in `request`: it did not arrive by HTTP. */
export function headJson(head: MessageHead | undefined) {
  return {
    command: head?.kind === "command" && head.argv !== null ? [...head.argv] : null,
    cwd: head?.kind === "command" ? head.cwd : null,
    request: head?.kind === "http"
      ? {
        method: head.method,
        origin: head.origin ?? null,
        path: head.path,
        headers: head.headers.map((pair) => [...pair]),
      }
      : null,
  };
}

export function base64(body: Uint8Array): string {
  return Buffer.from(body).toString("base64");
}

/** Values that every dead letter of a store is formatted with. */
export interface DeadLetterFormat {
  readonly storeName: string;
  readonly redaction: Redaction;
}

export function deadLetterJson(message: ClaimedMessage, { storeName, redaction }: DeadLetterFormat) {
  const { id, key, reason, tries, crashes, first_at, last_at } = messageRow(message, storeName);
  const last_error = redactText(message.error, redaction);
  return {
    version: 1,
    id,
    name: storeName,
    key,
    reason,
    tries,
    crashes,
    last_error,
    first_at,
    last_at,
    ...headJson(redactHead(message.head, redaction)),
    body: base64(message.body),
  };
}

/** The line with its newline. The JSON has no newline inside. */
export function deadLetterLine(message: ClaimedMessage, format: DeadLetterFormat): string {
  return `${JSON.stringify(deadLetterJson(message, format))}\n`;
}

/** The start of every line. */
export const deadLetterLineStart = JSON.stringify({ version: 1, id: "" }).slice(0, -2);

/** The start of a line, which identifies its message whatever was redacted. */
export function deadLetterLinePrefix({ id }: ClaimedMessage): string {
  return `${JSON.stringify({ version: 1, id }).slice(0, -1)},`;
}

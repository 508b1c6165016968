/**
 * Formats messages as JSON. A dead letter becomes one line with all its data except credentials, for a file, a program
 * or another store.
 */
import type { ListedMessageRow } from "../../base/rows/store_row.ts";
import type { ClaimedMessage, MessageHead, StoredMessage } from "../queue/stored_message.ts";
import { redactHead, type Redaction, redactText } from "./redaction.ts";

/** Returns the row that lists a message. `name` is the name of the store. */
export function makeListedMessageRow(message: StoredMessage, name: string): ListedMessageRow {
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
    last_at: formatUtcTimeOrNull(message.lastMs),
    next_at: formatUtcTimeOrNull(message.nextMs),
    bytes,
    forwarding: message.forwardState,
    forwarding_error: message.forwardError,
  };
}

/** Formats milliseconds of the wall clock as a UTC time. */
export function formatUtcTimeOrNull(atMs: number | null): string | null {
  return atMs === null ? null : new Date(atMs).toISOString();
}

/**
 * Returns the JSON of a message's head. `command` is null if the message has no command of its own; `request` is null
 * if the message did not arrive by HTTP.
 */
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

export function encodeBase64(body: Uint8Array): string {
  return Buffer.from(body).toString("base64");
}

export interface DeadLetterFormat {
  readonly storeName: string;
  readonly redaction: Redaction;
}

export function deadLetterJson(message: ClaimedMessage, { storeName, redaction }: DeadLetterFormat) {
  const { id, key, reason, tries, crashes, first_at, last_at } = makeListedMessageRow(message, storeName);
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
    body: encodeBase64(message.body),
  };
}

/** Returns the line of a dead letter, including the newline at its end. */
export function deadLetterLine(message: ClaimedMessage, format: DeadLetterFormat): string {
  return `${JSON.stringify(deadLetterJson(message, format))}\n`;
}

/** The text with which every line of a dead letter starts. */
export const deadLetterLineStartText = JSON.stringify({ version: 1, id: "" }).slice(0, -2);

/** Returns the beginning of a dead letter's line, which contains the ID. Redaction does not change it. */
export function deadLetterLinePrefix({ id }: ClaimedMessage): string {
  return `${JSON.stringify({ version: 1, id }).slice(0, -1)},`;
}

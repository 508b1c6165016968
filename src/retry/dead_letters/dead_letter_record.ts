/** A dead letter as one line of JSON with all its data except credentials, for a file, a program or another store. Pure. */
import type { ClaimedMessage } from "../queue/stored_message.ts";
import { redactedHead, redactedText, type Redaction } from "./redaction.ts";

export interface DeadLetterJson {
  readonly version: 1;
  readonly id: string;
  readonly name: string;
  readonly key: string | null;
  readonly reason: string | null;
  readonly tries: number;
  readonly crashes: number;
  readonly last_error: string | null;
  readonly first_at: string;
  readonly last_at: string | null;
  readonly command: readonly string[] | null;
  readonly cwd: string | null;
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly headers: (readonly [string, string])[];
  } | null;
  /** base64. */
  readonly body: string;
}

/** Values that every dead letter of a store is formatted with. */
export interface DeadLetterFormat {
  readonly storeName: string;
  readonly redaction: Redaction;
}

export function deadLetterJson(message: ClaimedMessage, { storeName, redaction }: DeadLetterFormat): DeadLetterJson {
  const head = redactedHead(message.head, redaction);
  return {
    version: 1,
    id: message.id,
    name: storeName,
    key: message.key,
    reason: message.reason,
    tries: message.tries,
    crashes: message.crashes,
    last_error: redactedText(message.error, redaction),
    first_at: new Date(message.firstMs).toISOString(),
    last_at: message.lastMs === null ? null : new Date(message.lastMs).toISOString(),
    command: head.kind === "command" && head.argv !== null ? [...head.argv] : null,
    cwd: head.kind === "command" ? head.cwd : null,
    request: head.kind === "http" ? { method: head.method, path: head.path, headers: [...head.headers] } : null,
    body: Buffer.from(message.body).toString("base64"),
  };
}

/** The line with its newline. The JSON has no newline inside. */
export function deadLetterLine(message: ClaimedMessage, format: DeadLetterFormat): string {
  return `${JSON.stringify(deadLetterJson(message, format))}\n`;
}

/** The start of a line, which identifies its message whatever was redacted. */
export function deadLetterLinePrefix({ id }: ClaimedMessage): string {
  return `${JSON.stringify({ version: 1, id }).slice(0, -1)},`;
}

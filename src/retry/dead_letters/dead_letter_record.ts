/** A dead letter as a line of JSON: all there is of it but credentials, for a file, a program, or another store. Pure. */
import type { ClaimedMessage } from "../queue/stored_message.ts";
import { redactedHead, redactedText, type Redaction } from "./redaction.ts";

export interface LetterJson {
  readonly version: 1;
  readonly id: string;
  readonly name: string;
  readonly key: string | null;
  readonly reason: string | null;
  readonly tries: number;
  readonly crashes: number;
  readonly lastError: string | null;
  readonly firstAt: string;
  readonly lastAt: string | null;
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

/** What a letter goes out with. */
export interface LetterRules {
  readonly storeName: string;
  readonly redaction: Redaction;
}

export function letterOf(message: ClaimedMessage, { storeName, redaction }: LetterRules): LetterJson {
  const head = redactedHead(message.head, redaction);
  return {
    version: 1,
    id: message.id,
    name: storeName,
    key: message.key,
    reason: message.reason,
    tries: message.tries,
    crashes: message.crashes,
    lastError: redactedText(message.error, redaction),
    firstAt: new Date(message.firstMs).toISOString(),
    lastAt: message.lastMs === null ? null : new Date(message.lastMs).toISOString(),
    command: head.kind === "command" && head.argv !== null ? [...head.argv] : null,
    cwd: head.kind === "command" ? head.cwd : null,
    request: head.kind === "http" ? { method: head.method, path: head.path, headers: [...head.headers] } : null,
    body: Buffer.from(message.body).toString("base64"),
  };
}

/** With its newline; JSON has none inside. */
export function letterLine(message: ClaimedMessage, rules: LetterRules): string {
  return `${JSON.stringify(letterOf(message, rules))}\n`;
}

/** By its beginning a line is known for the message's, whatever was left out of it. */
export function letterLineStart({ id }: ClaimedMessage): string {
  return `${JSON.stringify({ version: 1, id }).slice(0, -1)},`;
}

/** Prepares texts for messages, and checks texts from files and other programs. */
import { BatonError } from "../errors.ts";

/**
 * Replaces control and format characters in a text of another program or user, because they could move the cursor or
 * forge a line of output.
 */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\u{fffd}");
}

/** Returns a number with its noun: `1 message`, `2 messages`. */
export function countWithNoun(count: number, singular: string, plural = `${singular}s`): string {
  return `${count} ${count === 1 ? singular : plural}`;
}

const newline = 0x0a;

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

/** Returns the number, from 1, of the first line that is not UTF-8; null if there is none. */
export function firstNonUtf8Line(bytes: Uint8Array): number | null {
  if (isUtf8(bytes)) return null;
  for (let line = 1, from = 0;; line++) {
    const end = bytes.indexOf(newline, from);
    if (end === -1 || !isUtf8(bytes.subarray(from, end))) return line;
    from = end + 1;
  }
}

/**
 * Decodes a file that must be UTF-8, because baton compares names as text. Throws CONFIG; `name` is the beginning of
 * the message.
 */
export function decodeUtf8(bytes: Uint8Array, name: string): string {
  const line = firstNonUtf8Line(bytes);
  if (line === null) return new TextDecoder().decode(bytes);
  throw new BatonError("CONFIG", `${name}, line ${line}, is not valid UTF-8`);
}

/**
 * Returns the type of a value for a message, such as "Number", "DataView" or "Undefined". A Buffer is a "Uint8Array".
 */
export function valueTypeName(value: unknown): string {
  return Object.prototype.toString.call(value).slice("[object ".length, -1);
}

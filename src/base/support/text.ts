/** Texts for messages, and texts from outside. */
import { isUtf8 } from "node:buffer";
import { BatonError } from "../errors.ts";

/**
 * Replaces control and format characters of a text from outside, which could move the cursor or forge a line of output.
 */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\u{fffd}");
}

/** A number and its noun in the singular or plural: `1 message`, `2 messages`. */
export function countWithNoun(count: number, singular: string, plural = `${singular}s`): string {
  return `${count} ${count === 1 ? singular : plural}`;
}

const newline = 0x0a;

/** The number (from 1) of the first line with bytes that are not UTF-8; null when all bytes are UTF-8. */
export function firstNonUtf8Line(bytes: Uint8Array): number | null {
  if (isUtf8(bytes)) return null;
  for (let line = 1, from = 0;; line++) {
    const end = bytes.indexOf(newline, from);
    if (end === -1 || !isUtf8(bytes.subarray(from, end))) return line;
    from = end + 1;
  }
}

/** Decodes a file that must be UTF-8: names are compared as text. `name` begins the message. Throws CONFIG. */
export function decodeUtf8(bytes: Uint8Array, name: string): string {
  const line = firstNonUtf8Line(bytes);
  if (line === null) return new TextDecoder().decode(bytes);
  throw new BatonError("CONFIG", `${name}, line ${line}, is not valid UTF-8`);
}

/** Returns "Number", "DataView", "Undefined" …; that of a Buffer is "Uint8Array". */
export function valueTypeName(value: unknown): string {
  return Object.prototype.toString.call(value).slice("[object ".length, -1);
}

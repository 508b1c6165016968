/** Text that has to be UTF-8, because names are compared in it: two wrong byte strings must not become the same text. */
import { isUtf8 } from "node:buffer";
import { BatonError } from "../errors.ts";

const newline = 0x0a;

/** The first line with bytes that are not UTF-8, counted from 1; null when all of it is UTF-8. */
export function lineNotUtf8(bytes: Uint8Array): number | null {
  if (isUtf8(bytes)) return null;
  for (let line = 1, from = 0;; line++) {
    const end = bytes.indexOf(newline, from);
    if (end === -1 || !isUtf8(bytes.subarray(from, end))) return line;
    from = end + 1;
  }
}

/** The text of a file with settings. `name` begins the message. Throws CONFIG. */
export function utf8Text(bytes: Uint8Array, name: string): string {
  const line = lineNotUtf8(bytes);
  if (line === null) return new TextDecoder().decode(bytes);
  throw new BatonError("CONFIG", `${name}, line ${line}, is not valid UTF-8`);
}

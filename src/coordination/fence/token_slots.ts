/**
 * The text of a fencing store. The store has two lines of equal length, which are written alternately: an incomplete
 * write then leaves the other line intact. The highest valid token counts. Pure.
 */
import { BatonError } from "../../base/errors.ts";

export interface UsedFencingToken {
  readonly token: bigint;
  /** The process that used the token, for display. */
  readonly by: string;
  /** When the token was used, by the clock of the process's host, for display. */
  readonly at: string;
}

export interface FencingTokenSlots {
  readonly highest: UsedFencingToken | null;
  /** The line to write next: the line that does not have the highest token. */
  readonly next: 0 | 1;
}

/** Length of a line in bytes, including the line feed. */
export const tokenSlotBytes = 256;

/** The number of decimal digits of a 64-bit token. */
const digits = 20;
const tokenMax = (1n << 64n) - 1n;

const beginning = "baton-fence 1 ";
// The token is at both ends of a line. In an incomplete line, the two tokens differ.
const linePattern = /^baton-fence 1 (\d{20}) (\S+) (.*?) *(\d{20})\n$/;

/** Reads the two lines of a store. Throws BAD_DATA if the file is not a fencing store; `path` is for the message. */
export function readFencingTokenSlots(text: string, path: string): FencingTokenSlots {
  const slots = [text.slice(0, tokenSlotBytes), text.slice(tokenSlotBytes, 2 * tokenSlotBytes)].map(parseSlot);
  const [first = null, second = null] = slots;
  if (first === null && second === null) {
    const isStore = [0, tokenSlotBytes].some((at) => text.startsWith(beginning, at));
    // The first write was incomplete, so no token has been acknowledged.
    if (text.length < tokenSlotBytes && (isStore || beginning.startsWith(text))) return { highest: null, next: 0 };
    if (isStore) {
      const remedy = "delete the file when no process with an older token is left";
      throw new BatonError("BAD_DATA", `Fencing store "${path}" is damaged and its highest token is lost: ${remedy}`);
    }
    throw new BatonError("BAD_DATA", `"${path}" is not a fencing store: use a separate file; baton creates it`);
  }
  if (second === null || (first !== null && first.token >= second.token)) return { highest: first, next: 1 };
  return { highest: second, next: 0 };
}

export function formatFencingTokenSlot({ token, by, at }: UsedFencingToken): string {
  const written = token.toString().padStart(digits, "0");
  const head = `${beginning}${written} ${at.replaceAll(/\s/g, "")} `;
  const room = tokenSlotBytes - head.length - digits - 2;
  // Uses only ASCII, because the length of the line in bytes is fixed.
  const plain = by.replaceAll(/[^\x21-\x7e]/g, "?").slice(0, room);
  return `${head}${plain.padEnd(room)} ${written}\n`;
}

/** Parses a token. Throws USAGE; the message contains `where`, the source of the token. */
export function parseFencingToken(written: string, where: string): bigint {
  const token = /^\d{1,20}$/.test(written) ? BigInt(written) : null;
  if (token !== null && token <= tokenMax) return token;
  throw new BatonError("USAGE", `"${written}" is not a fencing token: expected a whole number up to 2^64-1 (${where})`);
}

function parseSlot(line: string): UsedFencingToken | null {
  const [, token, at, by, again] = linePattern.exec(line) ?? [];
  if (token === undefined || at === undefined || by === undefined || token !== again) return null;
  return { token: BigInt(token), at, by };
}

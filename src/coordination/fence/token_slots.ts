/**
 * A fencing store's file as text: two lines of one length, written in turn, so that a write cut short leaves the other.
 * The higher valid token counts. Pure: text in, text out.
 */
import { BatonError } from "../../errors.ts";

export interface FencedToken {
  readonly token: bigint;
  /** Who brought it, for people. */
  readonly by: string;
  /** When, by the wall clock of its host, for people. */
  readonly at: string;
}

export interface TokenSlots {
  readonly highest: FencedToken | null;
  /** Which of the two lines to write next, and so not the one with the highest token. */
  readonly next: 0 | 1;
}

/** Bytes of one line, the line's end included. */
export const slotBytes = 256;

/** ZooKeeper's zxids are 64 bits. */
const digits = 20;
const tokenMax = (1n << 64n) - 1n;

const beginning = "baton-fence 1 ";
// The token stands at both ends: a line of which a part was written does not have the same at both.
const linePattern = /^baton-fence 1 (\d{20}) (\S+) (.*?) *(\d{20})\n$/;

/** Throws BAD_DATA for a file that is no fencing store; `path` is for the sentence. */
export function readTokenSlots(text: string, path: string): TokenSlots {
  const slots = [text.slice(0, slotBytes), text.slice(slotBytes, 2 * slotBytes)].map(parseSlot);
  const [first = null, second = null] = slots;
  if (first === null && second === null) {
    const isStore = [0, slotBytes].some((at) => text.startsWith(beginning, at));
    // Nothing was ever acknowledged from a file whose first line was cut short.
    if (text.length < slotBytes && (isStore || beginning.startsWith(text))) return { highest: null, next: 0 };
    if (isStore) {
      const remedy = "delete it when nobody with an older token is left, and the next token is the first";
      throw new BatonError("BAD_DATA", `The fencing store "${path}" is damaged, its highest token is lost: ${remedy}`);
    }
    throw new BatonError("BAD_DATA", `"${path}" is not a fencing store: name a file of its own, which need not exist`);
  }
  if (second === null || (first !== null && first.token >= second.token)) return { highest: first, next: 1 };
  return { highest: second, next: 0 };
}

export function formatTokenSlot({ token, by, at }: FencedToken): string {
  const written = token.toString().padStart(digits, "0");
  const head = `${beginning}${written} ${at.replaceAll(/\s/g, "")} `;
  const room = slotBytes - head.length - digits - 2;
  // Only what is one byte: a line has to keep its length.
  const plain = by.replaceAll(/[^\x21-\x7e]/g, "?").slice(0, room);
  return `${head}${plain.padEnd(room)} ${written}\n`;
}

/** Throws USAGE, with `where` the token was written at the sentence's end. */
export function parseToken(written: string, where: string): bigint {
  const token = /^\d{1,20}$/.test(written) ? BigInt(written) : null;
  if (token !== null && token <= tokenMax) return token;
  throw new BatonError("USAGE", `"${written}" is not a fencing token, which is a whole number up to 2^64-1 (${where})`);
}

function parseSlot(line: string): FencedToken | null {
  const [, token, at, by, again] = linePattern.exec(line) ?? [];
  if (token === undefined || at === undefined || by === undefined || token !== again) return null;
  return { token: BigInt(token), at, by };
}

/** How each field of a header is read and written. Invalid text gives undefined; reading never throws. */
import { batchMessagesMax, numberMax, sessionKeyLengthMax } from "./message_limits.ts";
import { type StatusCode, statusCodes } from "./status_codes.ts";
import { decodeToken, encodeToken } from "./name_token.ts";

export interface FieldType<T> {
  /** Description of a valid value, which stands after "not": "a number from 0 to 9". */
  readonly wanted: string;
  read(text: string): T | undefined;
  write(value: T): string;
}

/**
 * A process of a client: `number` grows with each process, and `key` is random, so that two copies of one state differ.
 */
export interface SessionToken {
  readonly number: number;
  readonly key: string;
}

/** Message IDs from `first` to `last`. */
export interface IdRange {
  readonly first: number;
  readonly last: number;
}

/** The last ID of a client that has had no message. */
export const noMessageId = -1;

export const token: FieldType<string> = {
  wanted: "a percent-encoded UTF-8 text of 1 to 1024 bytes",
  read: decodeToken,
  write: encodeToken,
};

/** Decimal without sign and leading zeros, so that each number has one spelling. */
export const number: FieldType<number> = {
  wanted: `a decimal number from 0 to ${numberMax}`,
  read: readNumber,
  write: writeNumber,
};

export const messageIdOrNone: FieldType<number> = {
  wanted: `a message id, or ${noMessageId} for none`,
  read: (text) => text === "-1" ? noMessageId : readNumber(text),
  write: (value) => value === noMessageId ? "-1" : writeNumber(value),
};

export const batchCount: FieldType<number> = {
  wanted: `a decimal number from 0 to ${batchMessagesMax}`,
  read(text) {
    const count = readNumber(text);
    return count === undefined || count > batchMessagesMax ? undefined : count;
  },
  write: writeNumber,
};

export const flag: FieldType<true> = {
  wanted: '"yes"',
  read: (text) => text === "yes" ? true : undefined,
  write: () => "yes",
};

export const session: FieldType<SessionToken> = {
  wanted: 'a number from 1 on, "/", and a key of 1 to 64 characters',
  read: readSession,
  write: writeSession,
};

export const statusCode: FieldType<StatusCode> = {
  wanted: `one of ${statusCodes.join(", ")}`,
  read: (text) => statusCodes.find((code) => code === text),
  write: (code) => code,
};

/**
 * A new position for a subscriber: before the oldest stored message, after the newest, or after the message with this
 * ID.
 */
export const position: FieldType<number | "start" | "end"> = {
  wanted: '"start", "end", or a message id',
  read: (text) => text === "start" || text === "end" ? text : readNumber(text),
  write: (value) => typeof value === "string" ? value : writeNumber(value),
};

/** "17-20,25": IDs in the order of the batch's messages, ascending. */
export const idRanges: FieldType<readonly IdRange[]> = {
  wanted: 'message ids as "17-20,25"',
  read(text) {
    const ranges: IdRange[] = [];
    for (const part of text.split(",", batchMessagesMax + 1)) {
      const dash = part.indexOf("-");
      const first = readNumber(dash < 0 ? part : part.slice(0, dash));
      const last = dash < 0 ? first : readNumber(part.slice(dash + 1));
      if (first === undefined || last === undefined || last < first) return undefined;
      if (last - first >= batchMessagesMax || ranges.length === batchMessagesMax) return undefined;
      ranges.push({ first, last });
    }
    return ranges;
  },
  write: (ranges) => ranges.map(({ first, last }) => first === last ? `${first}` : `${first}-${last}`).join(","),
};

function readNumber(text: string): number | undefined {
  const length = text.length;
  if (length === 0 || length > 16) return undefined;
  if (length > 1 && text.charCodeAt(0) === 48) return undefined;
  let value = 0;
  for (let at = 0; at < length; at++) {
    const digit = text.charCodeAt(at) - 48;
    if (digit < 0 || digit > 9) return undefined;
    value = value * 10 + digit;
  }
  return value > numberMax ? undefined : value;
}

function writeNumber(value: number): string {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${value} is not ${number.wanted}`);
  return String(value);
}

/** The last values that were read and written: a connection repeats the same one. */
let readLast: { readonly text: string; readonly value: SessionToken } | null = null;
let wroteLast: { readonly text: string; readonly value: SessionToken } | null = null;

function readSession(text: string): SessionToken | undefined {
  if (readLast?.text === text) return readLast.value;
  const slash = text.indexOf("/");
  const sessionNumber = readNumber(text.slice(0, slash));
  const key = decodeToken(text.slice(slash + 1));
  if (slash < 1 || !sessionNumber || key === undefined || key.length > sessionKeyLengthMax) return undefined;
  readLast = { text, value: Object.freeze({ number: sessionNumber, key }) };
  return readLast.value;
}

function writeSession(value: SessionToken): string {
  if (wroteLast?.value === value) return wroteLast.text;
  wroteLast = { text: `${writeNumber(value.number)}/${encodeToken(value.key)}`, value: Object.freeze(value) };
  return wroteLast.text;
}

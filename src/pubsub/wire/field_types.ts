/** Reads and writes a message's fields and headers. Reading returns undefined for invalid text, and never throws. */
import { batchMessagesMax, messageNumberMax, sessionKeyLengthMax } from "./message_limits.ts";
import { type StatusCode, statusCodes } from "./status_codes.ts";
import { decodeNameToken, encodeNameToken } from "./name_token.ts";

export interface MessageFieldType<T> {
  /** Describes a valid value. In messages, the description follows "it is not", for example "a number from 0 to 9". */
  readonly wanted: string;
  read(text: string): T | undefined;
  write(value: T): string;
}

/**
 * Identifies a process of a client. `number` increases with each process. `key` is random, so that two processes with
 * copies of the same state have different sessions.
 */
export interface SessionToken {
  readonly number: number;
  readonly key: string;
}

export interface MessageIdRange {
  readonly first: number;
  readonly last: number;
}

/** The ID of the last message, for a client that has not received a message. */
export const noMessageId = -1;

export const encodedTextField: MessageFieldType<string> = {
  wanted: "a percent-encoded UTF-8 text of 1 to 1024 bytes",
  read: decodeNameToken,
  write: encodeNameToken,
};

/** The type of decimal numbers without a sign or leading zeros. Each number thus has only one spelling. */
export const numberField: MessageFieldType<number> = {
  wanted: `a decimal number from 0 to ${messageNumberMax}`,
  read: parseNumber,
  write: formatNumber,
};

export const messageIdOrNoneField: MessageFieldType<number> = {
  wanted: `a message id, or ${noMessageId} for none`,
  read: (text) => text === "-1" ? noMessageId : parseNumber(text),
  write: (value) => value === noMessageId ? "-1" : formatNumber(value),
};

export const batchCountField: MessageFieldType<number> = {
  wanted: `a decimal number from 0 to ${batchMessagesMax}`,
  read(text) {
    const count = parseNumber(text);
    return count === undefined || count > batchMessagesMax ? undefined : count;
  },
  write: formatNumber,
};

export const yesFlagField: MessageFieldType<true> = {
  wanted: '"yes"',
  read: (text) => text === "yes" ? true : undefined,
  write: () => "yes",
};

export const sessionField: MessageFieldType<SessionToken> = {
  wanted: 'a number from 1 on, "/", and a key of 1 to 64 characters',
  read: parseSession,
  write: formatSession,
};

export const statusCodeField: MessageFieldType<StatusCode> = {
  wanted: `one of ${statusCodes.join(", ")}`,
  read: (text) => statusCodes.find((code) => code === text),
  write: (code) => code,
};

/**
 * The type of a new position for a subscriber: before the oldest stored message ("start"), after the newest ("end"), or
 * after the message with this ID.
 */
export const seekPositionField: MessageFieldType<number | "start" | "end"> = {
  wanted: '"start", "end", or a message id',
  read: (text) => text === "start" || text === "end" ? text : parseNumber(text),
  write: (value) => typeof value === "string" ? value : formatNumber(value),
};

/** The type of the IDs of a batch's messages, in ascending order, as in "17-20,25". */
export const idRangesField: MessageFieldType<readonly MessageIdRange[]> = {
  wanted: 'message ids as "17-20,25"',
  read(text) {
    const ranges: MessageIdRange[] = [];
    for (const part of text.split(",", batchMessagesMax + 1)) {
      const dash = part.indexOf("-");
      const first = parseNumber(dash < 0 ? part : part.slice(0, dash));
      const last = dash < 0 ? first : parseNumber(part.slice(dash + 1));
      if (first === undefined || last === undefined || last < first) return undefined;
      if (last - first >= batchMessagesMax || ranges.length === batchMessagesMax) return undefined;
      ranges.push({ first, last });
    }
    return ranges;
  },
  write: (ranges) => ranges.map(({ first, last }) => first === last ? `${first}` : `${first}-${last}`).join(","),
};

function parseNumber(text: string): number | undefined {
  const length = text.length;
  if (length === 0 || length > 16) return undefined;
  if (length > 1 && text.charCodeAt(0) === 48) return undefined;
  let value = 0;
  for (let at = 0; at < length; at++) {
    const digit = text.charCodeAt(at) - 48;
    if (digit < 0 || digit > 9) return undefined;
    value = value * 10 + digit;
  }
  return value > messageNumberMax ? undefined : value;
}

function formatNumber(value: number): string {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${value} is not ${numberField.wanted}`);
  return String(value);
}

/**
 * The last session that was read, and the last one that was written. Consecutive messages often have the same session.
 */
let lastParsed: { readonly text: string; readonly value: SessionToken } | null = null;
let lastFormatted: { readonly text: string; readonly value: SessionToken } | null = null;

function parseSession(text: string): SessionToken | undefined {
  if (lastParsed?.text === text) return lastParsed.value;
  const slash = text.indexOf("/");
  const sessionNumber = parseNumber(text.slice(0, slash));
  const key = decodeNameToken(text.slice(slash + 1));
  if (slash < 1 || !sessionNumber || key === undefined || key.length > sessionKeyLengthMax) return undefined;
  lastParsed = { text, value: Object.freeze({ number: sessionNumber, key }) };
  return lastParsed.value;
}

function formatSession(value: SessionToken): string {
  if (lastFormatted?.value === value) return lastFormatted.text;
  lastFormatted = { text: `${formatNumber(value.number)}/${encodeNameToken(value.key)}`, value: Object.freeze(value) };
  return lastFormatted.text;
}

/**
 * Decodes a PUT of one message with ordinary names faster than `decodePubsubMessage`: a server receives a hundred
 * thousand of them per second. Returns null for all other messages. Reuses the strings of names that repeat.
 */
import { sessionField as sessionType, type SessionToken } from "./field_types.ts";
import { bodyBytesMax, tokenBytesMax } from "./message_limits.ts";
import type { PubsubMessage } from "./pubsub_messages.ts";

const blank = 32;
const cr = 13;
const lf = 10;
const percent = 37;
const zero = 48;
/** The most digits of a number that is read here; `decodePubsubMessage` reads longer ones. */
const digitsMax = 15;
const start = bytesOf("PUT ");
const sessionHeader = bytesOf("session: ");
const numberHeaders = ([
  ["version", "version: "],
  ["deadlineMs", "deadline-ms: "],
  ["firstUnacked", "first-unacked: "],
  ["after", "after: "],
  ["registration", "registration: "],
] as const).map(([key, text]) => ({ key, bytes: bytesOf(text) }));

/** A cache of recent values, by the hash of their bytes: most requests of a connection repeat the same names. */
class InternedValues<T> {
  readonly #slots: ({ readonly bytes: Uint8Array; readonly value: T } | undefined)[] = new Array(64);
  readonly #read: (text: string) => T | undefined;

  constructor(read: (text: string) => T | undefined) {
    this.#read = read;
  }

  get(frame: Uint8Array, from: number, to: number): T | undefined {
    let hash = to - from;
    for (let at = from; at < to; at++) hash = (Math.imul(hash, 31) + (frame[at] as number)) | 0;
    const slot = (hash ^ (hash >>> 8)) & 63;
    const known = this.#slots[slot];
    if (known !== undefined && isAt(frame, from, known.bytes) && known.bytes.byteLength === to - from) {
      return known.value;
    }
    const bytes = frame.slice(from, to);
    let text = "";
    for (const byte of bytes) text += String.fromCharCode(byte);
    const value = this.#read(text);
    if (value !== undefined) this.#slots[slot] = { bytes, value };
    return value;
  }
}

const names = new InternedValues<string>((text) => text);
const sessions = new InternedValues<SessionToken>((text) => sessionType.read(text));

type PutHeaders = { session?: SessionToken } & { [key in (typeof numberHeaders)[number]["key"]]?: number };

/**
 * Reads only the topic of a PUT with ordinary names; the rest of the message may be invalid. Returns null for any other
 * message.
 */
export function readPutTopic(frame: Uint8Array | undefined): string | null {
  if (frame === undefined || !isAt(frame, 0, start)) return null;
  const senderEnd = wordEnd(frame, start.length);
  const topicEnd = wordEnd(frame, senderEnd + 1);
  if (frame[senderEnd] !== blank || frame[topicEnd] !== blank) return null;
  return topicEnd === senderEnd + 1 ? null : names.get(frame, senderEnd + 1, topicEnd) ?? null;
}

/** Returns null for an invalid PUT and for any other message. */
export function decodePutRequest(frame: Uint8Array): PubsubMessage | null {
  if (!isAt(frame, 0, start)) return null;
  const senderEnd = wordEnd(frame, start.length);
  const topicEnd = wordEnd(frame, senderEnd + 1);
  if (frame[senderEnd] !== blank || frame[topicEnd] !== blank) return null;
  const counterEnd = wordEnd(frame, topicEnd + 1);
  const counter = readNumber(frame, topicEnd + 1, counterEnd);
  if (counter < 0 || frame[counterEnd] !== cr || frame[counterEnd + 1] !== lf) return null;
  const sender = names.get(frame, start.length, senderEnd);
  const topic = names.get(frame, senderEnd + 1, topicEnd);
  if (sender === undefined || topic === undefined || sender === "" || topic === "") return null;
  let at = counterEnd + 2;
  const headers: PutHeaders = {};
  let hasHeaders = false;
  while (frame[at] !== cr) {
    const end = lineEnd(frame, at);
    if (end < 0 || !readHeader(frame, at, end, headers)) return null;
    hasHeaders = true;
    at = end + 2;
  }
  if (frame[at + 1] !== lf) return null;
  const bodyBytes = frame.byteLength - (at + 2);
  if (bodyBytes < 1 || bodyBytes > bodyBytesMax) return null;
  const body = frame.subarray(at + 2);
  if (!hasHeaders) return { name: "PUT", sender, topic, counter, body } as PubsubMessage;
  return { name: "PUT", sender, topic, counter, body, headers } as PubsubMessage;
}

/** Reads one header. Returns false if it is not one of the usual headers, is repeated, or is invalid. */
function readHeader(frame: Uint8Array, at: number, end: number, headers: PutHeaders): boolean {
  if (isAt(frame, at, sessionHeader)) {
    const value = sessions.get(frame, at + sessionHeader.length, end);
    if (value === undefined || headers.session !== undefined) return false;
    headers.session = value;
    return true;
  }
  const header = numberHeaders.find(({ bytes }) => isAt(frame, at, bytes));
  if (header === undefined || headers[header.key] !== undefined) return false;
  return (headers[header.key] = readNumber(frame, at + header.bytes.length, end)) >= 0;
}

/** Returns where a word of ordinary characters ends. */
function wordEnd(frame: Uint8Array, from: number): number {
  const most = Math.min(frame.byteLength, from + tokenBytesMax);
  let at = from;
  for (; at < most; at++) {
    const byte = frame[at] as number;
    if (byte <= blank || byte >= 127 || byte === percent) break;
  }
  return at;
}

/** Returns where the CR LF of a line of ordinary characters begins; -1 for any other line. */
function lineEnd(frame: Uint8Array, from: number): number {
  const most = Math.min(frame.byteLength - 1, from + 128);
  for (let at = from; at < most; at++) {
    const byte = frame[at] as number;
    if (byte === cr) return frame[at + 1] === lf ? at : -1;
    if (byte < blank || byte >= 127 || byte === percent) return -1;
  }
  return -1;
}

/** Returns -1 for text that is not a number, and for a number with too many digits. */
function readNumber(frame: Uint8Array, from: number, to: number): number {
  const length = to - from;
  if (length < 1 || length > digitsMax || (length > 1 && frame[from] === zero)) return -1;
  let value = 0;
  for (let at = from; at < to; at++) {
    const digit = (frame[at] as number) - zero;
    if (digit < 0 || digit > 9) return -1;
    value = value * 10 + digit;
  }
  return value;
}

function isAt(frame: Uint8Array, from: number, bytes: Uint8Array): boolean {
  if (from + bytes.byteLength > frame.byteLength) return false;
  for (let at = 0; at < bytes.byteLength; at++) if (frame[from + at] !== bytes[at]) return false;
  return true;
}

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/**
 * Reads a PUT faster than the general decoder, because a service receives a hundred thousand such messages per second.
 * Leaves unusual messages to `decodePubsubMessage`, and gives the same result for all others. Reuses the strings of
 * repeated names.
 */
import { totalByteLength } from "../../base/wire/bytes.ts";
import { sessionField as sessionType, type SessionToken } from "./field_types.ts";
import { batchMessagesMax, bodyBytesMax, nameTokenBytesMax } from "./message_limits.ts";

const blank = 32;
const cr = 13;
const lf = 10;
const percent = 37;
const zero = 48;
/** The most digits of a number that this module reads. */
const digitsMax = 15;
const start = bytesOf("PUT ");
const sessionHeader = bytesOf("session: ");
const countHeader = bytesOf("count: ");
const deadlineHeader = bytesOf("deadline-ms: ");
const numberHeaders = ([
  [null, "version: "],
  [null, "deadline-ms: "],
  ["firstUnacked", "first-unacked: "],
  ["after", "after: "],
  ["registration", "registration: "],
] as const).map(([key, text]) => ({ key, bytes: bytesOf(text) }));

const sessionIndex = numberHeaders.length;
const countIndex = sessionIndex + 1;

/** A cache of recent values, by the hash of their bytes. Most requests of a connection repeat the same names. */
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

/** The first words of a PUT, which are enough to forward the frame. */
export interface PutFrameStart {
  readonly name: "PUT";
  readonly sender: string;
  readonly topic: string;
  /** The index in the frame at which the counter begins. */
  readonly counterAt: number;
}

/**
 * Reads the first words of a PUT whose names have no escapes. The rest of the message may be invalid. Returns null for
 * any other message.
 */
export function readPutFrameStart(frame: Uint8Array | undefined): PutFrameStart | null {
  if (frame === undefined || !isAt(frame, 0, start)) return null;
  const senderEnd = wordEnd(frame, start.length);
  const topicEnd = wordEnd(frame, senderEnd + 1);
  if (frame[senderEnd] !== blank || frame[topicEnd] !== blank) return null;
  const sender = names.get(frame, start.length, senderEnd);
  const topic = names.get(frame, senderEnd + 1, topicEnd);
  if (sender === undefined || topic === undefined || sender === "" || topic === "") return null;
  return { name: "PUT", sender, topic, counterAt: topicEnd + 1 };
}

/** Returns the value of the header `deadline-ms`, or undefined if the PUT has none. */
export function readPutDeadlineMs(frame: Uint8Array, { counterAt }: PutFrameStart): number | undefined {
  for (let end = frame.indexOf(cr, counterAt); end >= 0 && frame[end + 1] === lf;) {
    const at = end + 2;
    end = frame.indexOf(cr, at);
    if (end === at) return undefined; // the body follows
    if (!isAt(frame, at, deadlineHeader)) continue;
    const deadlineMs = readNumber(frame, at + deadlineHeader.length, end);
    return deadlineMs < 0 ? undefined : deadlineMs;
  }
  return undefined;
}

/** The values that follow the topic in a PUT, for the storage thread. */
export interface PutFrameValues {
  counter: number;
  session: SessionToken | null;
  registration: number;
  firstUnacked: number;
  after: number | null;
  /** The frames after the first one, until they are replaced by the body of a single message. */
  bodies: readonly Uint8Array[];
}

/**
 * Reads a PUT in a session, and writes its values into `values`. Returns false if the PUT is invalid or has unusual
 * headers; the caller must then not use `values`.
 */
export function readPutFrameValues(frame: Uint8Array, { counterAt }: PutFrameStart, values: PutFrameValues): boolean {
  const counterEnd = wordEnd(frame, counterAt);
  values.counter = readNumber(frame, counterAt, counterEnd);
  if (values.counter < 0 || frame[counterEnd] !== cr || frame[counterEnd + 1] !== lf) return false;
  values.session = null;
  let at = counterEnd + 2;
  let seen = 0;
  while (frame[at] !== cr) {
    const end = lineEnd(frame, at);
    const header = end < 0 ? -1 : readHeader(frame, at, end, values);
    if (header < 0 || (seen & (1 << header)) !== 0) return false;
    seen |= 1 << header;
    at = end + 2;
  }
  if (frame[at + 1] !== lf || values.session === null) return false;
  const bodyBytes = frame.byteLength - (at + 2);
  if ((seen & (1 << countIndex)) !== 0) return bodyBytes === 0 && totalByteLength(values.bodies) <= bodyBytesMax;
  if (bodyBytes < 1 || bodyBytes > bodyBytesMax || values.bodies.length > 0) return false;
  values.bodies = [frame.subarray(at + 2)];
  return true;
}

/** Reads one header. Returns the number of its bit; -1 if it is not one of the usual headers, or is invalid. */
function readHeader(frame: Uint8Array, at: number, end: number, values: PutFrameValues): number {
  if (isAt(frame, at, sessionHeader)) {
    values.session = sessions.get(frame, at + sessionHeader.length, end) ?? null;
    return values.session === null ? -1 : sessionIndex;
  }
  if (isAt(frame, at, countHeader)) {
    const count = readNumber(frame, at + countHeader.length, end);
    return count > 0 && count <= batchMessagesMax && count === values.bodies.length ? countIndex : -1;
  }
  const index = numberHeaders.findIndex(({ bytes }) => isAt(frame, at, bytes));
  const header = numberHeaders[index];
  if (header === undefined) return -1;
  const number = readNumber(frame, at + header.bytes.length, end);
  if (header.key !== null) values[header.key] = number;
  return number < 0 ? -1 : index;
}

/** Returns the index after a word of ordinary characters. */
function wordEnd(frame: Uint8Array, from: number): number {
  const most = Math.min(frame.byteLength, from + nameTokenBytesMax);
  let at = from;
  for (; at < most; at++) {
    const byte = frame[at] as number;
    if (byte <= blank || byte >= 127 || byte === percent) break;
  }
  return at;
}

/** Returns the index of the CR LF after a line of ordinary characters; -1 for any other line. */
function lineEnd(frame: Uint8Array, from: number): number {
  const most = Math.min(frame.byteLength - 1, from + 128);
  for (let at = from; at < most; at++) {
    const byte = frame[at] as number;
    if (byte === cr) return frame[at + 1] === lf ? at : -1;
    if (byte < blank || byte >= 127 || byte === percent) return -1;
  }
  return -1;
}

/** Reads a number. Returns -1 for text that is not a number, and for a number with too many digits. */
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

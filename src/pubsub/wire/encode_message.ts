/**
 * Encodes publish/subscribe messages as frames. An invalid value, such as a token that is too long or a number out of
 * range, is a bug of the caller and throws RangeError.
 */
import { totalByteLength } from "../../base/wire/bytes.ts";
import type { MessageFieldType, MessageIdRange } from "./field_types.ts";
import { batchMessagesMax, bodyBytesMax, headerBytesMax } from "./message_limits.ts";
import {
  headerFields,
  messageFields,
  optionalMessageFields,
  type PubsubHeaders,
  type PubsubMessage,
  type PubsubMessageName,
} from "./pubsub_messages.ts";
import { encodeNameToken } from "./name_token.ts";

type FieldWriter = MessageFieldType<unknown>;

const encoder = new TextEncoder();

const headerWriters = new Map(
  Object.entries(headerFields).map(([name, type]) => [toCamelCase(name), { name, type: type as FieldWriter }]),
);
const fieldWriters = Object.fromEntries(
  Object.entries(messageFields).map(([name, fields]) => [
    name,
    [
      ...Object.entries(fields),
      ...Object.entries(optionalMessageFields[name as keyof typeof optionalMessageFields] ?? {}),
    ] as [string, FieldWriter][],
  ]),
) as Record<PubsubMessageName, [string, FieldWriter][]>;

export function toCamelCase(name: string): string {
  return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * Returns the frames of a message: one frame, or for a batch one frame for the header and one for each body. The bodies
 * of a batch are not copied.
 */
export function encodePubsubMessage(message: PubsubMessage): Uint8Array[] {
  const { batch } = message;
  const header = formatHeader(message);
  if (header.length > headerBytesMax) {
    throw new RangeError(`A header of ${header.length} bytes is over the limit of ${headerBytesMax}`);
  }
  if (batch !== undefined) {
    checkBatch(batch, message.name === "PUT" ? 0 : 1);
    return [encoder.encode(header), ...batch];
  }
  const { body } = message;
  if (body === undefined || body.byteLength === 0) return [encoder.encode(header)];
  checkBody(body.byteLength);
  // Each character of the header is one byte, because tokens are escaped and everything else is ASCII.
  const frame = new Uint8Array(header.length + body.byteLength);
  encoder.encodeInto(header, frame);
  frame.set(body, header.length);
  return [frame];
}

function formatHeader(message: PubsubMessage): string {
  let text: string = message.name;
  for (const [name, type] of fieldWriters[message.name]) {
    const value = (message as unknown as Record<string, unknown>)[name];
    if (value !== undefined) text += ` ${type.write(value)}`;
  }
  text += "\r\n";
  if (message.headers !== undefined) text += formatHeaderFields(message.headers);
  if (message.batch !== undefined) text += `count: ${message.batch.length}\r\n`;
  return `${text}\r\n`;
}

function formatHeaderFields(headers: PubsubHeaders): string {
  let text = "";
  for (const key in headers) {
    const value = headers[key as keyof PubsubHeaders];
    if (value === undefined) continue;
    const line = headerWriters.get(key);
    if (line === undefined || key === "count") throw new RangeError(`There is no line called "${key}"`);
    text += `${line.name}: ${line.type.write(value)}\r\n`;
  }
  return text;
}

function checkBatch(batch: readonly Uint8Array[], min: number): void {
  if (batch.length < min || batch.length > batchMessagesMax) {
    throw new RangeError(`A batch of ${batch.length} messages: ${min} to ${batchMessagesMax} are possible`);
  }
  checkBody(totalByteLength(batch));
}

function checkBody(bytes: number): void {
  if (bytes > bodyBytesMax) throw new RangeError(`A body of ${bytes} bytes is over the limit of ${bodyBytesMax}`);
}

const zero = 48;
const dash = 45;
const end = encoder.encode("\r\n\r\n");
/** The number of digits of 9007199254740991, the largest number in a message. */
const digitsMax = 16;
/**
 * The bytes with which all responses of the last sender begin. `room` also has space for two numbers and the end of the
 * header.
 */
let lastBeginning: { readonly sender: string; readonly room: Uint8Array; readonly length: number } | null = null;

/**
 * Encodes the usual response to a put: OK, with the IDs of the stored messages. Faster than `encodePubsubMessage`,
 * because a server sends a hundred thousand such responses per second.
 */
export function encodePutResponse(sender: string, { first, last }: MessageIdRange): Uint8Array {
  if (lastBeginning?.sender !== sender) lastBeginning = makeBeginning(sender);
  const { room } = lastBeginning;
  let at = writeNumber(room, lastBeginning.length, first);
  if (last !== first) {
    room[at++] = dash;
    at = writeNumber(room, at, last);
  }
  for (let place = 0; place < end.byteLength; place++) room[at++] = end[place] as number;
  return room.slice(0, at);
}

function makeBeginning(sender: string) {
  const bytes = encoder.encode(`STATUS ${encodeNameToken(sender)} OK\r\nids: `);
  const room = new Uint8Array(bytes.byteLength + 2 * digitsMax + 1 + end.byteLength);
  room.set(bytes);
  return { sender, room, length: bytes.byteLength };
}

/** Writes a number. Returns the index after its last digit. */
function writeNumber(room: Uint8Array, from: number, value: number): number {
  let to = from + 1;
  for (let power = 10; power <= value; power *= 10) to++;
  for (let at = to - 1, left = value; at >= from; at--) {
    const rest = Math.floor(left / 10);
    room[at] = zero + (left - rest * 10);
    left = rest;
  }
  return to;
}

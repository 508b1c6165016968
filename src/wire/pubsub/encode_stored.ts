/**
 * Fast path for the response to a put (OK with the IDs of the stored messages and nothing else), which is sent a
 * hundred thousand times a second. Returns null for all other messages, which the general encoder writes.
 */
import type { Message } from "./pubsub_messages.ts";
import { encodeToken } from "./name_token.ts";

const encoder = new TextEncoder();
const zero = 48;
const dash = 45;
const end = encoder.encode("\r\n\r\n");
/** Digits of 9007199254740991. */
const digitsMax = 16;
/** The start of each response of one sender, with room for two numbers and the end of the header. */
let known: { readonly sender: string; readonly room: Uint8Array; readonly length: number } | null = null;

/** Returns the frame, or null for any other message. */
export function encodePutResponse(message: Message): Uint8Array | null {
  if (message.name !== "STATUS" || message.status !== "OK" || message.headers?.ids?.length !== 1) return null;
  if (message.body !== undefined || message.batch !== undefined || message.messageId !== undefined) return null;
  for (const line in message.headers) if (line !== "ids") return null;
  const [{ first, last }] = message.headers.ids as [{ first: number; last: number }];
  if (!Number.isSafeInteger(first) || !Number.isSafeInteger(last) || first < 0 || last < first) return null;
  if (known?.sender !== message.sender) known = beginningOf(message.sender);
  const { room } = known;
  let at = writeNumber(room, known.length, first);
  if (last !== first) {
    room[at++] = dash;
    at = writeNumber(room, at, last);
  }
  for (let place = 0; place < end.byteLength; place++) room[at++] = end[place] as number;
  return room.slice(0, at);
}

function beginningOf(sender: string) {
  const bytes = encoder.encode(`STATUS ${encodeToken(sender)} OK\r\nids: `);
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

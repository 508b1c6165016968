/**
 * Decodes the frames of a publish/subscribe message. Never throws. For an invalid message it returns an
 * InvalidPubsubMessage, which names the field and quotes its value; the server can thus answer every peer.
 */
import { totalByteLength } from "../../base/wire/bytes.ts";
import { toCamelCase } from "./encode_message.ts";
import type { MessageFieldType } from "./field_types.ts";
import { batchMessagesMax, bodyBytesMax, headerBytesMax, quotedValueLengthMax } from "./message_limits.ts";
import {
  headerFields,
  messageBodyKinds,
  messageFields,
  optionalMessageFields,
  type PubsubHeaders,
  type PubsubMessage,
} from "./pubsub_messages.ts";

/** The reason why a message is invalid. The response has the status BAD_REQUEST, with `reason` in its body. */
export interface InvalidPubsubMessage {
  readonly name: null;
  readonly field: string;
  readonly value: string;
  readonly reason: string;
  /** True if the message has headers. Its sender then also understands headers in the response. */
  readonly hasHeaders: boolean;
}

type FieldReader = MessageFieldType<unknown>;
interface MessageField {
  readonly name: string;
  readonly type: FieldReader;
}
interface MessageShape {
  readonly fields: readonly MessageField[];
  readonly fieldsMin: number;
  readonly body: "none" | "one" | "batch";
}

const shapes = new Map<string, MessageShape>(
  Object.entries(messageFields).map(([name, fields]) => {
    const needed = Object.entries(fields);
    const optional = Object.entries(optionalMessageFields[name as keyof typeof optionalMessageFields] ?? {});
    return [name, {
      fields: [...needed, ...optional].map(([field, type]) => ({ name: field, type: type as FieldReader })),
      fieldsMin: needed.length,
      body: messageBodyKinds[name as keyof typeof messageBodyKinds] ?? "none",
    }];
  }),
);
const headerShapes = new Map<string, { key: string; type: FieldReader }>(
  Object.entries(headerFields).map(([name, type]) => [name, { key: toCamelCase(name), type: type as FieldReader }]),
);

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const cr = 13;
const lf = 10;

/** Decodes the frames of one ZeroMQ message, without the envelope. Bodies are views of the frames. */
export function decodePubsubMessage(frames: readonly Uint8Array[]): PubsubMessage | InvalidPubsubMessage {
  const [frame] = frames;
  if (frame === undefined) return invalidMessage("frames", "0", "a message has at least one frame");
  const end = findHeaderEnd(frame);
  if (end < 0) return invalidHeader(frame, end);
  const header = headerText(frame, end);
  if (header === null) return invalidMessage("header", formatBytes(frame), "it is not UTF-8");
  const lineEnd = header.indexOf("\r\n");
  const first = lineEnd < 0 ? header : header.slice(0, lineEnd);
  const words = first.split(" ");
  const shape = shapes.get(words[0] ?? "");
  if (shape === undefined) {
    return invalidMessage("name", words[0] ?? "", `it is not one of ${[...shapes.keys()].join(", ")}`);
  }
  const message: Record<string, unknown> = { name: words[0] };
  const headers: Record<string, unknown> | null = lineEnd < 0 ? null : {};
  const wrong = readFields(words, shape, message) ??
    (headers === null ? null : readHeaders(header, lineEnd + 2, headers)) ??
    readBodies(frames, end + 4, shape, headers, message);
  if (wrong !== null) return { ...wrong, hasHeaders: headers !== null };
  if (headers !== null) message["headers"] = headers as PubsubHeaders;
  return message as unknown as PubsubMessage;
}

/**
 * Returns the index of CR LF CR LF, which ends the header. If it is missing, returns -1 minus the index of a stray
 * control character, or -1 minus the number of bytes that were searched.
 */
function findHeaderEnd(frame: Uint8Array): number {
  const length = Math.min(frame.byteLength, headerBytesMax);
  for (let at = 0; at < length; at++) {
    const byte = frame[at] as number;
    if (byte > 0x1f && byte !== 0x7f) continue;
    if (byte !== cr || frame[at + 1] !== lf) return -1 - at;
    if (frame[at + 2] === cr && frame[at + 3] === lf) return at + 4 <= length ? at : -1 - length;
    at++;
  }
  return -1 - length;
}

function invalidHeader(frame: Uint8Array, end: number): InvalidPubsubMessage {
  const at = -1 - end;
  if (at >= Math.min(frame.byteLength, headerBytesMax)) {
    return invalidMessage(
      "header",
      formatBytes(frame),
      `there is no CR LF CR LF in its first ${at} bytes; ${headerBytesMax} are the limit`,
    );
  }
  return invalidMessage("header", formatBytes(frame.subarray(0, at + 1)), `byte ${at} is a stray control character`);
}

/** Returns the header as text: ASCII, or UTF-8 from a plain client. Returns null for other bytes. */
function headerText(frame: Uint8Array, end: number): string | null {
  try {
    return utf8.decode(frame.subarray(0, end));
  } catch {
    return null;
  }
}

function readFields(
  words: readonly string[],
  shape: MessageShape,
  message: Record<string, unknown>,
): InvalidPubsubMessage | null {
  const given = words.length - 1;
  const { fields, fieldsMin } = shape;
  if (given < fieldsMin || given > fields.length) {
    const wanted = fields.map(({ name }, index) => index < fieldsMin ? name : `[${name}]`).join(" ");
    return invalidMessage("fields", words.join(" "), `${words[0]} has ${given} fields; wanted are: ${wanted}`);
  }
  for (let index = 0; index < given; index++) {
    const { name, type } = fields[index] as MessageField;
    const text = words[index + 1] as string;
    const value = type.read(text);
    if (value === undefined) return invalidMessage(name, text, `it is not ${type.wanted}`);
    message[name] = value;
  }
  return null;
}

/** Reads the headers. Ignores unknown names, so that later versions can add headers. */
function readHeaders(header: string, start: number, headers: Record<string, unknown>): InvalidPubsubMessage | null {
  for (let at = start; at <= header.length;) {
    const lineEnd = header.indexOf("\r\n", at);
    const end = lineEnd < 0 ? header.length : lineEnd;
    const colon = header.indexOf(": ", at);
    if (colon <= at || colon > end) return invalidMessage("header", header.slice(at, end), 'it is not "name: value"');
    const name = header.slice(at, colon);
    const line = headerShapes.get(name);
    if (line !== undefined) {
      const text = header.slice(colon + 2, end);
      const value = line.type.read(text);
      if (value === undefined) return invalidMessage(name, text, `it is not ${line.type.wanted}`);
      if (headers[line.key] !== undefined) return invalidMessage(name, text, "the header is repeated");
      headers[line.key] = value;
    }
    at = end + 2;
  }
  return null;
}

function readBodies(
  frames: readonly Uint8Array[],
  bodyStart: number,
  shape: MessageShape,
  headers: Record<string, unknown> | null,
  message: Record<string, unknown>,
): InvalidPubsubMessage | null {
  const frame = frames[0] as Uint8Array;
  const bytes = frame.byteLength - bodyStart;
  const count = headers?.["count"] as number | undefined;
  const behind = frames.length - 1;
  if (count !== undefined && headers !== null) delete headers["count"];
  if (behind !== (count ?? 0)) {
    return invalidMessage(
      "count",
      String(count ?? "none"),
      `${behind} frames are behind the header's; ${batchMessagesMax} may be`,
    );
  }
  if (count === undefined) {
    if (bytes === 0) return null;
    if (shape.body === "none") {
      return invalidMessage("body", `${bytes} bytes`, `${String(message["name"])} has no body`);
    }
    if (bytes > bodyBytesMax) return invalidMessage("body", `${bytes} bytes`, `${bodyBytesMax} are the limit`);
    message["body"] = frame.subarray(bodyStart);
    return null;
  }
  if (shape.body !== "batch") {
    return invalidMessage("count", String(count), `${String(message["name"])} has no batches`);
  }
  if (count === 0 && message["name"] !== "PUT") return invalidMessage("count", "0", "only a PUT may be of nothing");
  if (bytes !== 0) {
    return invalidMessage("body", `${bytes} bytes`, "the bodies of a batch are in frames of their own");
  }
  const batch = frames.slice(1);
  const sum = totalByteLength(batch);
  if (sum > bodyBytesMax) return invalidMessage("body", `${sum} bytes in a batch`, `${bodyBytesMax} are the limit`);
  message["batch"] = batch;
  return null;
}

function invalidMessage(field: string, value: string, why: string): InvalidPubsubMessage {
  const quoted = value.length > quotedValueLengthMax ? `${value.slice(0, quotedValueLengthMax)}…` : value;
  return {
    name: null,
    field,
    value: quoted,
    reason: `Cannot read the ${field} ${JSON.stringify(quoted)}: ${why}`,
    hasHeaders: false,
  };
}

/** Formats bytes that may not be text, for an error message. */
function formatBytes(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes.subarray(0, quotedValueLengthMax)) {
    text += byte > 0x1f && byte < 0x7f ? String.fromCharCode(byte) : `%${byte.toString(16).padStart(2, "0")}`;
  }
  return text;
}

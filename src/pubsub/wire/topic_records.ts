/**
 * The format of a topic's content, in the rows of a store and in the stream of a handoff. Equal content has equal
 * bytes, and therefore an equal hash, no matter how a store has split it into rows. The messages come first, ordered by
 * ID. Then follows what changes until the topic is sealed: the topic's numbers, and its clients, ordered by name. A
 * client's windows are ordered by session, and the entries of a window by counter.
 *
 * A record is a 32-bit length, one byte for its kind, and its fields, big-endian:
 *   message  id, time, publisher's session and counter, publisher, msg-id or none, body
 *   topic    name, incarnation, baseOffset, epoch, the newest id that was given, the oldest message that is there,
 *            registration
 *   client   name, session and its key, op and the session it was done in, the forgotten session, position or none,
 *            registration
 *   window   of the client before it: session, its key, firstUnacked, and up to 4,096 of (counter, id, fingerprint)
 *   keys     of the client before it: up to 4,096 of (msg-id, id, fingerprint), oldest first
 *   end      number of records before it
 */
import { ByteReader, ByteWriter, joinBytes, protocolError, readU32 } from "../../base/wire/bytes.ts";
import { bodyBytesMax } from "./message_limits.ts";

const recordKinds = { topic: 1, client: 2, window: 3, keys: 4, message: 5, end: 6 } as const;

/** The most entries in one record of a window (the recent counters of a publisher), and in one record of msg-ids. */
export const publisherWindowRecordEntriesMax = 4096;
const recordBytesMax = bodyBytesMax + (1 << 20);
const none = -1;
const encoder = new TextEncoder();

/** A topic in the stream of a handoff: the record with its numbers, after its messages and before its clients. */
export interface TopicRecord {
  readonly name: string;
  /** The incarnation of the topic, and the ID before its first message. */
  readonly incarnation: string;
  readonly baseOffset: number;
  readonly epoch: number;
  readonly last: number;
  readonly first: number;
  /**
   * A number that increases when the topic forgets publishers. A client that the topic does not know must use this
   * number.
   */
  readonly registration: number;
}

export interface TopicClientRecord {
  readonly name: string;
  readonly session: number;
  readonly key: string;
  readonly op: number;
  readonly opSession: number;
  readonly forgottenSession: number;
  readonly position: number | null;
  /** The topic's registration number when the client registered. Requests with a lower number are refused. */
  readonly registration: number;
}

/** A counter that a publisher has used, with the ID of its message and a 53-bit fingerprint of the message's body. */
export interface ResolvedPutCounter {
  readonly counter: number;
  readonly id: number;
  readonly fingerprint: number;
}

export interface PublisherWindowRecord {
  readonly session: number;
  readonly key: string;
  readonly firstUnacked: number;
  readonly entries: readonly ResolvedPutCounter[];
}

export interface MsgIdRecord {
  readonly key: string;
  readonly id: number;
  readonly fingerprint: number;
}

export interface TopicMessageRecord {
  readonly id: number;
  readonly timeMs: number;
  readonly session: number;
  readonly counter: number;
  readonly publisher: string;
  readonly msgId: string | null;
  readonly body: Uint8Array;
}

export type TopicDataRecord =
  | { readonly kind: "topic"; readonly topic: TopicRecord }
  | { readonly kind: "client"; readonly client: TopicClientRecord }
  | { readonly kind: "window"; readonly window: PublisherWindowRecord }
  | { readonly kind: "keys"; readonly keys: readonly MsgIdRecord[] }
  | { readonly kind: "message"; readonly message: TopicMessageRecord; readonly bytes: Uint8Array }
  | { readonly kind: "end"; readonly records: number };

export class TopicDataWriter {
  readonly #writer: ByteWriter;
  /** The last publisher's name and its bytes. Consecutive messages often have the same publisher. */
  #publisher = { name: "", bytes: new Uint8Array(0) };

  constructor(capacity = 1024) {
    this.#writer = new ByteWriter(capacity);
  }

  get byteLength(): number {
    return this.#writer.length;
  }

  writeTopic(topic: TopicRecord): void {
    this.#writeRecord(recordKinds.topic, (writer) => {
      writer.utf8WithI32Length(topic.name);
      writer.utf8WithI32Length(topic.incarnation);
      const { baseOffset, epoch, last, first, registration } = topic;
      for (const number of [baseOffset, epoch, last, first, registration]) writer.u53(number);
    });
  }

  writeClient(client: TopicClientRecord): void {
    this.#writeRecord(recordKinds.client, (writer) => {
      writer.utf8WithI32Length(client.name);
      writer.u53(client.session);
      writer.utf8WithI32Length(client.key);
      for (const number of [client.op, client.opSession, client.forgottenSession]) writer.u53(number);
      writer.u8(client.position === null ? 0 : 1);
      if (client.position !== null) writer.u53(client.position);
      writer.u53(client.registration);
    });
  }

  writeWindow(window: PublisherWindowRecord): void {
    this.#writeRecord(recordKinds.window, (writer) => {
      writer.u53(window.session);
      writer.utf8WithI32Length(window.key);
      writer.u53(window.firstUnacked);
      writer.raw(encodeResolvedPutCounters(window.entries));
    });
  }

  writeKeys(keys: readonly MsgIdRecord[]): void {
    this.#writeRecord(recordKinds.keys, (writer) => {
      for (const { key, id, fingerprint } of keys) {
        writer.utf8WithI32Length(key);
        writer.u53(id);
        writer.u53(fingerprint);
      }
    });
  }

  /**
   * Writes a message. Does not use `#writeRecord`, because the store calls this method for every message, and speed
   * matters.
   */
  writeMessage(
    id: number,
    { timeMs, session, counter, publisher, msgId, body }: Omit<TopicMessageRecord, "id">,
  ): void {
    const writer = this.#writer;
    const start = writer.length;
    if (this.#publisher.name !== publisher) this.#publisher = { name: publisher, bytes: encoder.encode(publisher) };
    const { bytes } = this.#publisher;
    writer.i32(0);
    writer.u8(recordKinds.message);
    writer.u53(id);
    writer.u53(timeMs);
    writer.u53(session);
    writer.u53(counter);
    writer.i32(bytes.byteLength);
    writer.raw(bytes);
    if (msgId === null) writer.i32(none);
    else writer.utf8WithI32Length(msgId);
    writer.raw(body);
    writer.setI32(start, writer.length - start - 4);
  }

  writeEnd(records: number): void {
    this.#writeRecord(recordKinds.end, (writer) => writer.u53(records));
  }

  writeRaw(records: Uint8Array): void {
    this.#writer.raw(records);
  }

  finish(): Uint8Array {
    return this.#writer.finish();
  }

  /** Starts again in the same memory. */
  clear(): void {
    this.#writer.clear();
  }

  #writeRecord(kind: number, write: (writer: ByteWriter) => void): void {
    const start = this.#writer.length;
    this.#writer.i32(0);
    this.#writer.u8(kind);
    write(this.#writer);
    this.#writer.setI32(start, this.#writer.length - start - 4);
  }
}

/** Encodes the entries of a window, 24 bytes each. */
export function encodeResolvedPutCounters(entries: readonly ResolvedPutCounter[]): Uint8Array {
  const writer = new ByteWriter(entries.length * 24 + 8);
  for (const { counter, id, fingerprint } of entries) {
    writer.u53(counter);
    writer.u53(id);
    writer.u53(fingerprint);
  }
  return writer.finish();
}

/** Decodes the entries of a window. Throws PROTOCOL for invalid entries. */
export function decodeResolvedPutCounters(bytes: Uint8Array): ResolvedPutCounter[] {
  return readEntries(new ByteReader(bytes));
}

/** Returns the offset of each message in a row of message records. Throws PROTOCOL for invalid records. */
export function messageRecordOffsets(records: Uint8Array): number[] {
  const reader = new ByteReader(records);
  const offsets: number[] = [];
  while (reader.remaining > 0) {
    offsets.push(records.byteLength - reader.remaining);
    const length = reader.i32();
    if (reader.u8() !== recordKinds.message) throw protocolError("A row of messages has a record of another kind");
    reader.view(length - 1);
  }
  return offsets;
}

/** Returns the message whose record begins at `offset`. Its body is a view of `records`. */
export function messageRecordAt(records: Uint8Array, offset: number): TopicMessageRecord {
  const head = new ByteReader(records.subarray(offset));
  const record = decodeRecord(head.view(head.i32()), records);
  if (record.kind !== "message") throw protocolError("A row of messages has a record of another kind");
  return record.message;
}

/**
 * Offset, in a message record, of the length of the publisher's name: after the record's length, its kind and four
 * numbers.
 */
const publisherAt = 4 + 1 + 4 * 8;

/**
 * Returns the part that subscribers receive of the message whose record begins at `offset`. The body is a view of
 * `records`. Throws PROTOCOL.
 */
export function messageRecordContentAt(
  records: Uint8Array,
  offset: number,
): { readonly msgId: string | null; readonly body: Uint8Array } {
  const end = offset + 4 + int32At(records, offset);
  const keyAt = offset + publisherAt + 4 + int32At(records, offset + publisherAt);
  if (!(keyAt > offset && keyAt + 4 <= end && end <= records.byteLength)) {
    throw protocolError(`The record of a message at ${offset} is damaged`);
  }
  const keyBytes = int32At(records, keyAt);
  if (keyBytes === none) return { msgId: null, body: records.subarray(keyAt + 4, end) };
  const reader = new ByteReader(records.subarray(keyAt + 4, end));
  return { msgId: reader.utf8(keyBytes), body: reader.view(reader.remaining) };
}

/** Reads a 32-bit number. Returns NaN if fewer than four bytes are left. */
function int32At(bytes: Uint8Array, at: number): number {
  if (!(at >= 0 && at + 4 <= bytes.byteLength)) return NaN;
  return readU32(bytes, at) | 0;
}

/** The size of the length before each record, in bytes. */
const lengthBytes = 4;

/** Decodes the records of a topic from pieces of any size. */
export class TopicDataReader {
  /** The pieces of an incomplete record; they are joined when the record is complete. */
  #parts: Uint8Array[] = [];
  #bytes = 0;
  /** The number of bytes that are needed to continue: the bytes of a length, or of a whole record. */
  #wanted = lengthBytes;

  /** The bytes of an incomplete record so far. */
  get pendingBytes(): number {
    return this.#bytes;
  }

  /** Yields the records that are complete with this piece. Keeps the piece. Throws PROTOCOL for an invalid record. */
  *push(piece: Uint8Array): Generator<TopicDataRecord, void, void> {
    this.#parts.push(piece);
    this.#bytes += piece.byteLength;
    if (this.#bytes < this.#wanted) return;
    const bytes = this.#parts.length === 1 ? piece : joinBytes(this.#parts);
    this.#wanted = lengthBytes;
    let at = 0;
    while (bytes.byteLength - at >= lengthBytes) {
      const length = new ByteReader(bytes.subarray(at, at + lengthBytes)).i32();
      if (length < 1 || length > recordBytesMax) throw protocolError(`A topic's record has ${length} bytes`);
      if (bytes.byteLength - at - lengthBytes < length) {
        this.#wanted = lengthBytes + length;
        break;
      }
      const whole = bytes.subarray(at, at + lengthBytes + length);
      at += whole.byteLength;
      yield decodeRecord(whole.subarray(lengthBytes), whole);
    }
    this.#bytes = bytes.byteLength - at;
    this.#parts = this.#bytes === 0 ? [] : [bytes.slice(at)];
  }
}

function decodeRecord(bytes: Uint8Array, whole: Uint8Array): TopicDataRecord {
  const reader = new ByteReader(bytes);
  const text = () => reader.utf8(reader.i32());
  const number = () => reader.u53();
  const kind = reader.u8();
  switch (kind) {
    case recordKinds.topic: {
      const names = { name: text(), incarnation: text() };
      const baseOffset = number();
      const epoch = number();
      const last = number();
      return { kind: "topic", topic: { ...names, baseOffset, epoch, last, first: number(), registration: number() } };
    }
    case recordKinds.client: {
      const client = { name: text(), session: number(), key: text(), op: number(), opSession: number() };
      const forgottenSession = number();
      const position = reader.u8() === 0 ? null : number();
      return { kind: "client", client: { ...client, forgottenSession, position, registration: number() } };
    }
    case recordKinds.window:
      return {
        kind: "window",
        window: { session: number(), key: text(), firstUnacked: number(), entries: readEntries(reader) },
      };
    case recordKinds.keys: {
      const keys: MsgIdRecord[] = [];
      while (reader.remaining > 0) keys.push({ key: text(), id: number(), fingerprint: reader.u53() });
      return { kind: "keys", keys };
    }
    case recordKinds.message: {
      const fields = { id: number(), timeMs: number(), session: number(), counter: number(), publisher: text() };
      const keyBytes = reader.i32();
      const msgId = keyBytes === none ? null : reader.utf8(keyBytes);
      return { kind: "message", message: { ...fields, msgId, body: reader.view(reader.remaining) }, bytes: whole };
    }
    case recordKinds.end:
      return { kind: "end", records: number() };
    default:
      throw protocolError(`A topic's data has a record of the unknown kind ${kind}`);
  }
}

function readEntries(reader: ByteReader): ResolvedPutCounter[] {
  const entries: ResolvedPutCounter[] = [];
  while (reader.remaining > 0) entries.push({ counter: reader.u53(), id: reader.u53(), fingerprint: reader.u53() });
  return entries;
}

/**
 * Packs operations and responses into one byte array, to pass them between a server's event loop and its storage
 * thread: a structured clone of as many objects takes ten times as long. Never leaves the process.
 */
import { ByteReader, ByteWriter } from "../bytes.ts";
import type { IdRange, SessionToken } from "./field_types.ts";
import { statusCodes } from "./status_codes.ts";
import type {
  ClientOperation,
  StoreOperation,
  StoreResponse,
  TopicInfo,
  TopicMessageContent,
} from "./store_operations.ts";

const kinds = ["put", "get", "subscribe", "unsubscribe", "seek", "info", "cancel"] as const;
/** Initial and maximum bytes of the buffer that a packer keeps for the next batch. */
const capacityMin = 4096;
const capacityMax = 1 << 20;

/** Encodes null and -1. */
const none = -1;

class BatchPacker {
  protected writer = new ByteWriter(capacityMin);
  protected added = 0;

  /** Operations or responses since the last `take`. */
  get count(): number {
    return this.added;
  }

  get byteLength(): number {
    return this.writer.length;
  }

  take(): Uint8Array {
    const piece = finishPiece(this.writer);
    this.writer = clearWriter(this.writer);
    this.added = 0;
    return piece;
  }
}

/** Collects operations; repeated names are written once. */
export class OperationPacker extends BatchPacker {
  #names = new Map<string, number>();

  add(operation: StoreOperation): void {
    const { writer } = this;
    this.added++;
    writer.u8(kinds.indexOf(operation.kind));
    if (operation.kind === "cancel") return writer.i32(operation.cancelledTicket);
    writer.i32(operation.ticket);
    writer.i32(this.#nameIndex(operation.topic));
    writer.u53(operation.epoch);
    writer.i32(this.#nameIndex(operation.client));
    this.#packSession(operation.session);
    if (operation.session !== null) this.writer.u53(operation.registration ?? 0);
    this.#packFields(operation);
  }

  /** Returns the operations, then the names that they refer to, then the length of the first part. */
  override take(): Uint8Array {
    const { writer } = this;
    const operationBytes = writer.length;
    writer.i32(this.#names.size);
    for (const name of this.#names.keys()) writer.utf8WithI32Length(name);
    writer.i32(operationBytes);
    this.#names = new Map();
    return super.take();
  }

  #packFields(operation: ClientOperation): void {
    const { writer } = this;
    switch (operation.kind) {
      case "put":
        writer.u53(operation.counter);
        this.#packSession(operation.fromSession);
        writer.u53(operation.firstUnacked);
        this.#packOptional(operation.after);
        writer.i32(operation.msgId === null ? none : this.#nameIndex(operation.msgId));
        writer.i32(operation.bodies.length);
        for (const body of operation.bodies) {
          writer.i32(body.byteLength);
          writer.raw(body);
        }
        break;
      case "get":
        this.#packOptional(operation.op);
        this.#packOptional(operation.last === none ? null : operation.last);
        writer.u53(operation.max);
        writer.u53(operation.maxBytes);
        writer.u8((operation.wait ? 1 : 0) | (operation.peek ? 2 : 0));
        break;
      case "seek":
        this.#packOptional(operation.op);
        writer.u8(operation.to === "start" ? 0 : operation.to === "end" ? 1 : 2);
        writer.u53(typeof operation.to === "number" ? operation.to : 0);
        break;
      case "subscribe":
      case "unsubscribe":
        this.#packOptional(operation.op);
        break;
      case "info":
        break;
    }
  }

  #nameIndex(name: string): number {
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    const index = this.#names.size;
    this.#names.set(name, index);
    return index;
  }

  #packSession(session: SessionToken | null): void {
    this.writer.u53(session?.number ?? 0);
    if (session !== null) this.writer.i32(this.#nameIndex(session.key));
  }

  #packOptional(value: number | null): void {
    this.writer.u8(value === null ? 0 : 1);
    if (value !== null) this.writer.u53(value);
  }
}

/** Yields the operations in order; bodies are views of the piece. */
export function* unpackOperations(piece: Uint8Array): Generator<StoreOperation, void, void> {
  const whole = new ByteReader(piece);
  const reader = new ByteReader(whole.view(new ByteReader(piece.subarray(-4)).i32()));
  const names: string[] = [];
  for (let left = whole.i32(); left > 0; left--) names.push(whole.utf8(whole.i32()));
  const name = (index = reader.i32()) => names[index] as string;
  while (reader.remaining > 0) {
    const kind = kinds[reader.u8()];
    if (kind === undefined) throw new RangeError("An operation of an unknown kind");
    if (kind === "cancel") {
      yield { kind, cancelledTicket: reader.i32() };
      continue;
    }
    const ticket = reader.i32();
    const topic = name();
    const epoch = reader.u53();
    const client = name();
    const session = unpackSession(reader, name);
    const registration = session === null ? 0 : reader.u53();
    // Each object is written out: a spread costs more than everything else here.
    if (kind === "put") {
      const counter = reader.u53();
      const fromSession = unpackSession(reader, name);
      const firstUnacked = reader.u53();
      const after = unpackOptional(reader);
      const key = reader.i32();
      const msgId = key === none ? null : name(key);
      const bodies = unpackBodies(reader);
      yield {
        kind,
        ticket,
        topic,
        epoch,
        client,
        session,
        registration,
        counter,
        fromSession,
        firstUnacked,
        after,
        msgId,
        bodies,
      };
    } else if (kind === "get") {
      const op = unpackOptional(reader);
      const last = unpackOptional(reader) ?? none;
      const max = reader.u53();
      const maxBytes = reader.u53();
      const flags = reader.u8();
      const wait = (flags & 1) !== 0;
      const peek = (flags & 2) !== 0;
      yield { kind, ticket, topic, epoch, client, session, registration, op, last, max, maxBytes, wait, peek };
    } else if (kind === "seek") {
      const op = unpackOptional(reader);
      const place = reader.u8();
      const id = reader.u53();
      const to = place === 0 ? "start" : place === 1 ? "end" : id;
      yield { kind, ticket, topic, epoch, client, session, registration, op, to };
    } else if (kind === "info") yield { kind, ticket, topic, epoch, client, session };
    else yield { kind, ticket, topic, epoch, client, session, registration, op: unpackOptional(reader) };
  }
}

/** The last session: a batch repeats the same one. */
let knownSession: SessionToken | null = null;

function unpackSession(reader: ByteReader, name: () => string): SessionToken | null {
  const number = reader.u53();
  if (number === 0) return null;
  const key = name();
  if (knownSession?.number !== number || knownSession.key !== key) knownSession = { number, key };
  return knownSession;
}

function unpackOptional(reader: ByteReader): number | null {
  return reader.u8() === 0 ? null : reader.u53();
}

function unpackBodies(reader: ByteReader): Uint8Array[] {
  const bodies: Uint8Array[] = [];
  for (let left = reader.i32(); left > 0; left--) bodies.push(reader.view(reader.i32()));
  return bodies;
}

/** Collects responses. */
export class ResponsePacker extends BatchPacker {
  add(answer: StoreResponse): void {
    const { writer } = this;
    this.added++;
    writer.i32(answer.ticket);
    writer.u8(statusCodes.indexOf(answer.code));
    const { reason, ids, messages, missed = 0, redelivered = 0, failedAt, currentSession, info, registration } = answer;
    const { hasNoSubscriber = false } = answer;
    writer.u8(
      (reason !== "" ? 1 : 0) | (ids === undefined ? 0 : 2) | (messages === undefined ? 0 : 4) |
        (failedAt === undefined ? 0 : 8) | (currentSession === undefined ? 0 : 16) | (info === undefined ? 0 : 32) |
        (registration === undefined ? 0 : 64) | (hasNoSubscriber ? 128 : 0),
    );
    if (reason !== "") writer.utf8WithI32Length(reason);
    if (ids !== undefined) {
      writer.i32(ids.length);
      for (const { first, last } of ids) {
        writer.u53(first);
        writer.u53(last);
      }
    }
    if (messages !== undefined) {
      writer.u53(missed);
      writer.u53(redelivered);
      writer.i32(messages.length);
      for (const message of messages) packMessage(writer, message);
    }
    if (failedAt !== undefined) writer.u53(failedAt);
    if (currentSession !== undefined) writer.u53(currentSession);
    if (info !== undefined) writer.utf8WithI32Length(JSON.stringify(info));
    if (registration !== undefined) writer.u53(registration);
  }
}

/**
 * Copies the piece into a buffer of its exact size. Memory passed to another thread counts there and here with its
 * whole buffer, and larger buffers cause more garbage collections in both.
 */
function finishPiece(writer: ByteWriter): Uint8Array {
  const piece = writer.finish();
  return isBufferKept(piece) ? piece.slice() : piece;
}

function clearWriter(writer: ByteWriter): ByteWriter {
  if (!isBufferKept(writer.finish())) return new ByteWriter(capacityMin);
  writer.clear();
  return writer;
}

function isBufferKept({ buffer }: Uint8Array): boolean {
  return buffer.byteLength <= capacityMax;
}

/** Returns the responses of a piece; bodies are views of it. */
export function unpackResponses(piece: Uint8Array): StoreResponse[] {
  const reader = new ByteReader(piece);
  const answers: StoreResponse[] = [];
  while (reader.remaining > 0) {
    const ticket = reader.i32();
    const code = statusCodes[reader.u8()] as StoreResponse["code"];
    const flags = reader.u8();
    const reason = (flags & 1) === 0 ? "" : reader.utf8(reader.i32());
    const answer: { -readonly [Key in keyof StoreResponse]: StoreResponse[Key] } = { ticket, code, reason };
    if ((flags & 2) !== 0) answer.ids = unpackIds(reader);
    if ((flags & 4) !== 0) {
      answer.missed = reader.u53();
      answer.redelivered = reader.u53();
      const messages: TopicMessageContent[] = [];
      for (let left = reader.i32(); left > 0; left--) messages.push(unpackMessage(reader));
      answer.messages = messages;
    }
    if ((flags & 8) !== 0) answer.failedAt = reader.u53();
    if ((flags & 16) !== 0) answer.currentSession = reader.u53();
    if ((flags & 32) !== 0) answer.info = JSON.parse(reader.utf8(reader.i32())) as TopicInfo;
    if ((flags & 64) !== 0) answer.registration = reader.u53();
    if ((flags & 128) !== 0) answer.hasNoSubscriber = true;
    answers.push(answer);
  }
  return answers;
}

function unpackIds(reader: ByteReader): IdRange[] {
  const ids: IdRange[] = [];
  for (let left = reader.i32(); left > 0; left--) ids.push({ first: reader.u53(), last: reader.u53() });
  return ids;
}

function packMessage(writer: ByteWriter, message: TopicMessageContent): void {
  writer.u53(message.id);
  if (message.msgId === null) writer.i32(none);
  else writer.utf8WithI32Length(message.msgId);
  writer.i32(message.body.byteLength);
  writer.raw(message.body);
}

function unpackMessage(reader: ByteReader): TopicMessageContent {
  const id = reader.u53();
  const keyBytes = reader.i32();
  const msgId = keyBytes === none ? null : reader.utf8(keyBytes);
  return { id, msgId, body: reader.view(reader.i32()) };
}

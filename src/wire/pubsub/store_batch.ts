/**
 * Operations and answers packed into one piece of bytes, for the way between a server's loop and the thread of its store:
 * a structured clone of as many objects takes ten times as long. Never leaves the process.
 */
import { ByteReader, ByteWriter } from "../bytes.ts";
import type { IdRange, SessionToken } from "./field_types.ts";
import { statusCodes } from "./status_codes.ts";
import type {
  ClientOperation,
  GetOperation,
  PutOperation,
  StoreAnswer,
  StoredMessage,
  StoreOperation,
  TopicInfo,
} from "./store_operations.ts";

const kinds = ["put", "get", "subscribe", "unsubscribe", "seek", "info", "cancel"] as const;
/** Stands for null and for -1. */
const none = -1;

/** Collects operations; names that come again are written once. */
export class OperationPacker {
  #writer = new ByteWriter(4096);
  #names = new Map<string, number>();
  #count = 0;

  /** Operations since the last `take`. */
  get count(): number {
    return this.#count;
  }

  get byteLength(): number {
    return this.#writer.length;
  }

  add(operation: StoreOperation): void {
    const writer = this.#writer;
    this.#count++;
    writer.u8(kinds.indexOf(operation.kind));
    if (operation.kind === "cancel") return writer.i32(operation.of);
    writer.i32(operation.ticket);
    writer.i32(this.#name(operation.topic));
    writer.u53(operation.epoch);
    writer.i32(this.#name(operation.client));
    this.#session(operation.session);
    this.#rest(operation);
  }

  /** What was added: the operations, then the names that they refer to. */
  take(): Uint8Array {
    const operations = this.#writer.finish();
    const piece = new ByteWriter(operations.byteLength + 64 + this.#names.size * 32);
    piece.i32(operations.byteLength);
    piece.raw(operations);
    piece.i32(this.#names.size);
    for (const name of this.#names.keys()) piece.utf8WithI32Length(name);
    // A large batch must not keep its room for ever.
    this.#writer = new ByteWriter(4096);
    this.#names = new Map();
    this.#count = 0;
    return piece.finish();
  }

  #rest(operation: ClientOperation): void {
    const writer = this.#writer;
    switch (operation.kind) {
      case "put":
        writer.u53(operation.counter);
        this.#session(operation.fromSession);
        writer.u53(operation.low);
        this.#optional(operation.after);
        writer.i32(operation.msgId === null ? none : this.#name(operation.msgId));
        writer.i32(operation.bodies.length);
        for (const body of operation.bodies) {
          writer.i32(body.byteLength);
          writer.raw(body);
        }
        break;
      case "get":
        this.#optional(operation.op);
        this.#optional(operation.last === none ? null : operation.last);
        writer.u53(operation.max);
        writer.u53(operation.maxBytes);
        writer.u8((operation.wait ? 1 : 0) | (operation.peek ? 2 : 0));
        break;
      case "seek":
        this.#optional(operation.op);
        writer.u8(operation.to === "start" ? 0 : operation.to === "end" ? 1 : 2);
        writer.u53(typeof operation.to === "number" ? operation.to : 0);
        break;
      case "subscribe":
      case "unsubscribe":
        this.#optional(operation.op);
        break;
      case "info":
        break;
    }
  }

  #name(name: string): number {
    const known = this.#names.get(name);
    if (known !== undefined) return known;
    const index = this.#names.size;
    this.#names.set(name, index);
    return index;
  }

  #session(session: SessionToken | null): void {
    this.#writer.u53(session?.number ?? 0);
    if (session !== null) this.#writer.i32(this.#name(session.key));
  }

  #optional(value: number | null): void {
    this.#writer.u8(value === null ? 0 : 1);
    if (value !== null) this.#writer.u53(value);
  }
}

/** The operations of a piece, in their order; bodies are views onto it. */
export function* unpackOperations(piece: Uint8Array): Generator<StoreOperation, void, void> {
  const whole = new ByteReader(piece);
  const reader = new ByteReader(whole.view(whole.i32()));
  const names: string[] = [];
  for (let left = whole.i32(); left > 0; left--) names.push(whole.utf8(whole.i32()));
  const name = (index = reader.i32()) => names[index] as string;
  const session = (): SessionToken | null => {
    const number = reader.u53();
    return number === 0 ? null : { number, key: name() };
  };
  const optional = () => reader.u8() === 0 ? null : reader.u53();
  while (reader.remaining > 0) {
    const kind = kinds[reader.u8()];
    if (kind === undefined) throw new RangeError("An operation of an unknown kind");
    if (kind === "cancel") {
      yield { kind, of: reader.i32() };
      continue;
    }
    const ticket = reader.i32();
    const client = { ticket, topic: name(), epoch: reader.u53(), client: name(), session: session() };
    if (kind === "put") yield { kind, ...client, ...unpackPut(reader, session, optional, name) };
    else if (kind === "get") yield { kind, ...client, ...unpackGet(reader, optional) };
    else if (kind === "seek") {
      const op = optional();
      const place = reader.u8();
      const id = reader.u53();
      yield { kind, ...client, op, to: place === 0 ? "start" : place === 1 ? "end" : id };
    } else if (kind === "info") yield { kind, ...client };
    else yield { kind, ...client, op: optional() };
  }
}

function unpackPut(
  reader: ByteReader,
  session: () => SessionToken | null,
  optional: () => number | null,
  name: (index: number) => string,
): Pick<PutOperation, "counter" | "fromSession" | "low" | "after" | "msgId" | "bodies"> {
  const counter = reader.u53();
  const fromSession = session();
  const low = reader.u53();
  const after = optional();
  const key = reader.i32();
  const bodies: Uint8Array[] = [];
  for (let left = reader.i32(); left > 0; left--) bodies.push(reader.view(reader.i32()));
  return { counter, fromSession, low, after, msgId: key === none ? null : name(key), bodies };
}

function unpackGet(
  reader: ByteReader,
  optional: () => number | null,
): Pick<GetOperation, "op" | "last" | "max" | "maxBytes" | "wait" | "peek"> {
  const op = optional();
  const last = optional() ?? none;
  const max = reader.u53();
  const maxBytes = reader.u53();
  const flags = reader.u8();
  return { op, last, max, maxBytes, wait: (flags & 1) !== 0, peek: (flags & 2) !== 0 };
}

/** Collects answers. */
export class AnswerPacker {
  #writer = new ByteWriter(4096);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  get byteLength(): number {
    return this.#writer.length;
  }

  add(answer: StoreAnswer): void {
    const writer = this.#writer;
    this.#count++;
    writer.i32(answer.ticket);
    writer.u8(statusCodes.indexOf(answer.code));
    const { reason, ids, messages, missed = 0, redelivered = 0, at, currentSession, info } = answer;
    writer.u8(
      (reason !== "" ? 1 : 0) | (ids === undefined ? 0 : 2) | (messages === undefined ? 0 : 4) |
        (at === undefined ? 0 : 8) | (currentSession === undefined ? 0 : 16) | (info === undefined ? 0 : 32),
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
    if (at !== undefined) writer.u53(at);
    if (currentSession !== undefined) writer.u53(currentSession);
    if (info !== undefined) writer.utf8WithI32Length(JSON.stringify(info));
  }

  take(): Uint8Array {
    const piece = this.#writer.finish();
    this.#writer = new ByteWriter(4096);
    this.#count = 0;
    return piece;
  }
}

/** The answers of a piece; bodies are views onto it. */
export function unpackAnswers(piece: Uint8Array): StoreAnswer[] {
  const reader = new ByteReader(piece);
  const answers: StoreAnswer[] = [];
  while (reader.remaining > 0) {
    const ticket = reader.i32();
    const code = statusCodes[reader.u8()] as StoreAnswer["code"];
    const flags = reader.u8();
    const reason = (flags & 1) === 0 ? "" : reader.utf8(reader.i32());
    const answer: { -readonly [Key in keyof StoreAnswer]: StoreAnswer[Key] } = { ticket, code, reason };
    if ((flags & 2) !== 0) answer.ids = unpackIds(reader);
    if ((flags & 4) !== 0) {
      answer.missed = reader.u53();
      answer.redelivered = reader.u53();
      const messages: StoredMessage[] = [];
      for (let left = reader.i32(); left > 0; left--) messages.push(unpackMessage(reader));
      answer.messages = messages;
    }
    if ((flags & 8) !== 0) answer.at = reader.u53();
    if ((flags & 16) !== 0) answer.currentSession = reader.u53();
    if ((flags & 32) !== 0) answer.info = JSON.parse(reader.utf8(reader.i32())) as TopicInfo;
    answers.push(answer);
  }
  return answers;
}

function unpackIds(reader: ByteReader): IdRange[] {
  const ids: IdRange[] = [];
  for (let left = reader.i32(); left > 0; left--) ids.push({ first: reader.u53(), last: reader.u53() });
  return ids;
}

function packMessage(writer: ByteWriter, message: StoredMessage): void {
  writer.u53(message.id);
  writer.u53(message.timeMs);
  writer.utf8WithI32Length(message.publisher);
  if (message.msgId === null) writer.i32(none);
  else writer.utf8WithI32Length(message.msgId);
  writer.i32(message.body.byteLength);
  writer.raw(message.body);
}

function unpackMessage(reader: ByteReader): StoredMessage {
  const id = reader.u53();
  const timeMs = reader.u53();
  const publisher = reader.utf8(reader.i32());
  const keyBytes = reader.i32();
  const msgId = keyBytes === none ? null : reader.utf8(keyBytes);
  return { id, timeMs, publisher, msgId, body: reader.view(reader.i32()) };
}

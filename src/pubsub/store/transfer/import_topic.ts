/**
 * Imports a topic that another server sends. The server uses the imported rows only after it has checked the hash and
 * activated the topic.
 */
import { createHash } from "node:crypto";
import { BatonError } from "../../../base/errors.ts";
import {
  type MsgIdRecord,
  type PublisherWindowRecord,
  type TopicClientRecord,
  TopicDataReader,
  type TopicDataRecord,
  type TopicMessageRecord,
} from "../../wire/topic_records.ts";
import { encodeStoredName } from "../rows/topic_client.ts";
import { logRowBytesMax, logRowMessagesMax } from "../limits/topic_store_limits.ts";
import type { TopicContentId } from "../operations/owned_store.ts";
import { awaitAnswer, type StepGenerator } from "../../../base/support/steps.ts";
import { RowsUnavailable } from "../rows/loaded_data.ts";
import { emptyTopicChange, type ReceivedTopicNumbers, type TopicChange, type TopicRows } from "../rows/topic_rows.ts";

export class TopicImport {
  readonly name: string;
  readonly content: TopicContentId;
  readonly #rows: TopicRows;
  readonly #reader = new TopicDataReader();
  readonly #hash = createHash("sha256");
  /** The id of the new topic row; 0 before the first piece. */
  topicId = 0;
  #change: TopicChange = emptyTopicChange(0);
  /** True when the topic record has arrived. After this record, no message may follow. */
  #hasTopic = false;
  #clientId: number | null = null;
  #clientName: Uint8Array | null = null;
  #window: { readonly client: number; readonly session: number } | null = null;
  #first = Infinity;
  #records = 0;
  #ended = false;
  #last = 0;
  /** The last message that the sender has deleted, and the last message of the newest row. */
  #gone = 0;
  #stored: number;
  #bytes = 0;
  #clients = 0;
  #registration = 0;
  #row: Uint8Array[] = [];
  #rowBytes = 0;
  #rowFirst = 0;
  #rowLast = 0;

  constructor(rows: TopicRows, name: string, content: TopicContentId) {
    this.#rows = rows;
    this.name = name;
    this.content = content;
    this.#stored = content.baseOffset;
  }

  /** Imports one piece durably. Throws BAD_DATA or PROTOCOL for invalid data. */
  *importPiece(piece: Uint8Array): StepGenerator {
    this.#hash.update(piece);
    if (this.topicId === 0) {
      const { incarnation, baseOffset, epoch, owner } = this.content;
      const arriving = { name: this.name, incarnation, baseOffset, epoch };
      this.topicId = yield* awaitAnswer(this.#rows.copies.addArriving(arriving, owner));
      this.#change = emptyTopicChange(this.topicId);
    }
    for (const record of this.#reader.push(piece)) {
      this.#receive(record);
      if (record.kind === "topic") yield* this.#deleteBelow(record.topic.first);
    }
    yield* this.#commit();
  }

  /**
   * Checks the import after its last piece. Throws BAD_DATA if data is missing, the SHA-256 differs, or the rows are no
   * longer in the store.
   */
  *checkComplete(hash: string): StepGenerator {
    const found = this.#hash.digest("hex");
    if (found !== hash) throw this.#importError(`its hash is ${found}, but the sender's is ${hash}`);
    if (!this.#ended || this.#reader.pendingBytes > 0) throw this.#importError("its end is missing");
    if (!(yield* awaitAnswer(this.#rows.copies.isArriving(this.topicId)))) {
      throw this.#importError("its rows were dropped during the transfer");
    }
  }

  /** The number of bytes that have arrived and will be written when their row is complete. */
  get bufferedBytes(): number {
    return this.#reader.pendingBytes + this.#rowBytes;
  }

  get ends(): ReceivedTopicNumbers {
    const gone = this.#gone;
    const stored = Math.max(this.#stored, gone);
    const counts = { bytes: this.#bytes, clients: this.#clients, registration: this.#registration };
    return { last: this.#last, gone, stored, ...counts };
  }

  *#commit(): StepGenerator {
    const [lost] = yield* awaitAnswer(this.#rows.commit([this.#change]));
    this.#change = emptyTopicChange(this.topicId);
    if (lost !== undefined) {
      throw new RowsUnavailable(`Cannot import topic ${JSON.stringify(this.name)}: ${lost.reason}`);
    }
  }

  #receive(record: TopicDataRecord): void {
    if (this.#ended) throw this.#importError("data follows its end");
    if ((record.kind === "message" || record.kind === "topic") === this.#hasTopic) {
      throw this.#importError("its topic record must come once, after all messages");
    }
    switch (record.kind) {
      case "topic": {
        const { incarnation, baseOffset, epoch } = this.content;
        const sent = record.topic;
        if (
          sent.name !== this.name || sent.incarnation !== incarnation || sent.baseOffset !== baseOffset ||
          sent.epoch !== epoch
        ) {
          throw this.#importError(`it is of ${JSON.stringify(sent.name)}, ${sent.incarnation}, in epoch ${sent.epoch}`);
        }
        if (sent.last < Math.max(this.#rowLast, baseOffset)) {
          throw this.#importError(`its newest message is ${this.#rowLast}, but its record says ${sent.last}`);
        }
        if (sent.first > sent.last + 1) {
          throw this.#importError(`its oldest message, ${sent.first}, is after its newest, ${sent.last}`);
        }
        this.#writeRow();
        this.#gone = sent.first - 1;
        this.#last = sent.last;
        this.#registration = sent.registration;
        this.#hasTopic = true;
        break;
      }
      case "client":
        this.#insertClient(record.client);
        break;
      case "window":
        this.#addWindow(this.#requireClientId(), record.window);
        break;
      case "keys":
        for (const key of record.keys) this.#addKey(this.#requireClientId(), key);
        break;
      case "message":
        this.#addMessage(record.message, record.bytes);
        break;
      case "end":
        if (record.records !== this.#records) {
          throw this.#importError(`it has ${this.#records} records, but ${record.records} were sent`);
        }
        this.#ended = true;
        break;
    }
    this.#records++;
  }

  /** Adds a client. Every sender sends clients in the order of their names' bytes, and each name only once. */
  #insertClient(client: TopicClientRecord): void {
    const name = encodeStoredName(client.name);
    if (this.#clientName !== null && compareBytes(this.#clientName, name) >= 0) {
      throw this.#importError(`client ${JSON.stringify(client.name)} is out of order`);
    }
    if (client.name === "") throw this.#importError("a client has no name");
    if ((client.position ?? 0) > this.#last) {
      throw this.#importError(
        `${JSON.stringify(client.name)} is at message ${client.position}, but the newest is ${this.#last}`,
      );
    }
    this.#clientName = name;
    this.#clients++;
    this.#clientId = this.#rows.numbers.client(this.topicId);
    const unread = { deliveredUpTo: 0, windows: null, msgIds: null };
    this.#change.clients.push({ ...client, ...unread, id: this.#clientId, topicId: this.topicId, isNew: false });
  }

  #addWindow(client: number, { session, key, firstUnacked, entries }: PublisherWindowRecord): void {
    // A window with many counters has several records, one after the other.
    const isNew = this.#window?.client !== client || this.#window.session !== session;
    this.#window = { client, session };
    this.#change.windows.push({ client, session, key, firstUnacked, isNew });
    if (entries.length === 0) return;
    const id = this.#rows.numbers.resolved(this.topicId);
    this.#change.resolved.push({ id, client, session, firstUnacked, entries });
  }

  #addKey(client: number, { key, id: message, fingerprint }: MsgIdRecord): void {
    this.#change.keys.push({ id: this.#rows.numbers.key(this.topicId), client, key, message, fingerprint });
  }

  #requireClientId(): number {
    if (this.#clientId === null) throw this.#importError("a window comes before its client");
    return this.#clientId;
  }

  #addMessage({ id }: TopicMessageRecord, bytes: Uint8Array): void {
    if (id <= this.#rowLast) throw this.#importError(`message ${id} is out of order`);
    const isFull = this.#row.length === logRowMessagesMax || this.#rowBytes + bytes.byteLength > logRowBytesMax;
    if (this.#row.length > 0 && (isFull || id !== this.#rowLast + 1)) this.#writeRow();
    if (this.#row.length === 0) this.#rowFirst = id;
    this.#first = Math.min(this.#first, id);
    this.#row.push(bytes);
    this.#rowBytes += bytes.byteLength;
    this.#rowLast = id;
  }

  /**
   * Deletes messages that the sender deleted after it had sent them. A subscriber that skipped these messages at the
   * sender must not receive them here after newer messages.
   */
  *#deleteBelow(first: number): StepGenerator {
    if (this.#first >= first) return;
    yield* this.#commit();
    this.#bytes -= yield* awaitAnswer(this.#rows.copies.deleteBelow(this.topicId, first));
  }

  #writeRow(): void {
    if (this.#row.length === 0) return;
    const records = new Uint8Array(this.#rowBytes);
    let at = 0;
    for (const record of this.#row) {
      records.set(record, at);
      at += record.byteLength;
    }
    const id = this.#rows.numbers.message(this.topicId, this.#rowFirst);
    const bytes = this.#rowBytes;
    const head = { id, first: this.#rowFirst, last: this.#rowLast, previous: this.#stored, bytes };
    this.#change.added.push({ head, records });
    this.#stored = this.#rowLast;
    this.#bytes += bytes;
    this.#row = [];
    this.#rowBytes = 0;
  }

  #importError(why: string): BatonError {
    return new BatonError("BAD_DATA", `Cannot import topic ${JSON.stringify(this.name)}: ${why}`);
  }
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.byteLength, b.byteLength);
  for (let at = 0; at < length; at++) if (a[at] !== b[at]) return (a[at] as number) - (b[at] as number);
  return a.byteLength - b.byteLength;
}

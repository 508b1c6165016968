/**
 * Imports a topic that another server sends. The rows are not used before the hash was checked and the topic was
 * activated.
 */
import { createHash } from "node:crypto";
import { BatonError } from "../../errors.ts";
import {
  type ClientRecord,
  messageOffsets,
  type MessageRecord,
  TopicDataReader,
  type TopicDataRecord,
} from "../../wire/pubsub/topic_transfer_data.ts";
import { encodeName } from "./topic_client.ts";
import { rowBytesMax, rowMessagesMax } from "./topic_store_limits.ts";
import type { ContentName } from "./owned_store.ts";
import type { TopicTable } from "./topic_table.ts";
import { insertMessages } from "./log_rows.ts";
import type { TopicDatabase } from "./topic_database.ts";
import { topicStates } from "./topic_tables.ts";

export class TopicImport {
  readonly name: string;
  readonly #content: ContentName;
  readonly #database: TopicDatabase;
  readonly #topics: TopicTable;
  readonly #reader = new TopicDataReader();
  readonly #hash = createHash("sha256");
  /** Id of the new topic row; null before the first piece. */
  topicId: number | null = null;
  /** The topic record has arrived: no message may follow. */
  #hasTopic = false;
  #clientId: number | null = null;
  #clientName: Uint8Array | null = null;
  #records = 0;
  #ended = false;
  #last = 0;
  /** Messages deleted by the sender; last message of the newest row. */
  #gone = 0;
  #stored: number;
  #bytes = 0;
  #clients = 0;
  #registration = 0;
  #row: Uint8Array[] = [];
  #rowBytes = 0;
  #rowFirst = 0;
  #rowLast = 0;

  constructor(database: TopicDatabase, topics: TopicTable, name: string, content: ContentName) {
    this.#database = database;
    this.#topics = topics;
    this.name = name;
    this.#content = content;
    this.#stored = content.baseOffset;
  }

  /** Imports one piece in the open transaction. Throws BAD_DATA or PROTOCOL for invalid data. */
  importPiece(piece: Uint8Array): void {
    this.#hash.update(piece);
    const { incarnation, baseOffset, epoch, owner } = this.#content;
    const arriving = { name: this.name, incarnation, baseOffset, epoch, last: baseOffset };
    this.topicId ??= this.#topics.insert(arriving, topicStates.receiving, owner);
    for (const record of this.#reader.push(piece)) this.#receive(record);
  }

  /**
   * Called after the last piece. Throws BAD_DATA if data is missing, the SHA-256 differs, or the rows are no longer in
   * the store.
   */
  checkComplete(hash: string): void {
    const found = this.#hash.digest("hex");
    if (found !== hash) throw this.#importError(`its hash is ${found}, but the sender's is ${hash}`);
    if (!this.#ended || this.#reader.pendingBytes > 0) throw this.#importError("its end is missing");
    const row = this.#database.get("SELECT state FROM topics WHERE id = ?", this.topicId);
    if (Number(row?.["state"]) !== topicStates.receiving) {
      throw this.#importError("its rows were dropped during the transfer");
    }
  }

  /** Stages the topic, in the open transaction. After the commit it can be activated. */
  stageTopic(): void {
    const ends = { last: this.#last, gone: this.#gone, stored: Math.max(this.#stored, this.#gone) };
    const row = { ...ends, bytes: this.#bytes, clients: this.#clients, state: topicStates.staged };
    this.#topics.changeRow(this.topicId ?? 0, { ...row, registration: this.#registration });
  }

  /** Drops the rows, in the open transaction. */
  dropRows(): void {
    if (this.topicId !== null) this.#topics.drop(this.topicId);
  }

  #receive(record: TopicDataRecord): void {
    if (this.#ended) throw this.#importError("data follows its end");
    if ((record.kind === "message" || record.kind === "topic") === this.#hasTopic) {
      throw this.#importError("its topic record must come once, after all messages");
    }
    switch (record.kind) {
      case "topic": {
        const { incarnation, baseOffset, epoch } = this.#content;
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
        this.#dropBelow(sent.first);
        this.#last = sent.last;
        this.#registration = sent.registration;
        this.#hasTopic = true;
        break;
      }
      case "client":
        this.#insertClient(record.client);
        break;
      case "window":
        this.#topics.clients.insertWindow(this.#requireClientId(), record.window);
        break;
      case "keys":
        for (const key of record.keys) this.#topics.clients.insertKey(this.#requireClientId(), key);
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

  /** Names are unique and in the order of their bytes, as every sender writes them. */
  #insertClient(client: ClientRecord): void {
    const name = encodeName(client.name);
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
    this.#clientId = this.#topics.clients.insert(this.topicId ?? 0, client);
  }

  #requireClientId(): number {
    if (this.#clientId === null) throw this.#importError("a window comes before its client");
    return this.#clientId;
  }

  #addMessage({ id }: MessageRecord, bytes: Uint8Array): void {
    if (id <= this.#rowLast) throw this.#importError(`message ${id} is out of order`);
    const isFull = this.#row.length === rowMessagesMax || this.#rowBytes + bytes.byteLength > rowBytesMax;
    if (this.#row.length > 0 && (isFull || id !== this.#rowLast + 1)) this.#writeRow();
    if (this.#row.length === 0) this.#rowFirst = id;
    this.#row.push(bytes);
    this.#rowBytes += bytes.byteLength;
    this.#rowLast = id;
  }

  /**
   * Deletes messages that the sender deleted after sending them. A subscriber that was told they are gone must not
   * receive them here, after newer ones.
   */
  #dropBelow(first: number): void {
    const gone = "FROM messages WHERE topic = ? AND first < ? AND last < ?";
    const { bytes } = this.#database.get(`SELECT sum(bytes) AS bytes ${gone}`, this.topicId, first, first) ?? {};
    this.#bytes -= Number(bytes ?? 0);
    this.#database.run(`DELETE ${gone}`, this.topicId, first, first);
    // Row boundaries differ from the sender's: one row may have both deleted and kept messages.
    const row = this.#database.get(
      "SELECT id, first, last, previous, records FROM messages WHERE topic = ? AND first < ?",
      this.topicId,
      first,
    );
    if (row === undefined) return;
    const { id, first: begin, last, previous, records } = row;
    if (!(records instanceof Uint8Array)) throw new Error(`row ${id} of the messages is damaged`);
    this.#database.run("DELETE FROM messages WHERE id = ?", Number(id));
    this.#bytes -= records.byteLength;
    const kept = records.slice(messageOffsets(records)[first - Number(begin)]);
    this.#insertRow({ first, last: Number(last), previous: Number(previous) }, kept);
  }

  #writeRow(): void {
    if (this.#row.length === 0) return;
    const records = new Uint8Array(this.#rowBytes);
    let at = 0;
    for (const record of this.#row) {
      records.set(record, at);
      at += record.byteLength;
    }
    this.#insertRow({ first: this.#rowFirst, last: this.#rowLast, previous: this.#stored }, records);
    this.#stored = this.#rowLast;
    this.#row = [];
    this.#rowBytes = 0;
  }

  #insertRow(
    range: { readonly first: number; readonly last: number; readonly previous: number },
    records: Uint8Array,
  ): void {
    const [id, topic, bytes] = [this.#topics.nextRowId(), this.topicId ?? 0, records.byteLength];
    insertMessages(this.#database, { ...range, id, topic, bytes }, records);
    this.#bytes += bytes;
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

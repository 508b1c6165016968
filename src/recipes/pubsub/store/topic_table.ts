/** The topics of a store: those it serves or keeps sealed, those that were received and not taken over yet, and what is left of dropped ones. */
import { BatonError } from "../../../errors.ts";
import type { TopicRecord } from "../../../wire/pubsub/topic_data.ts";
import { nameBytes, nameOf } from "./client.ts";
import { ClientTable } from "./client_table.ts";
import { deletedRowsPerCommitMax, rowCacheBytesMax, topicsMax } from "./store_limits.ts";
import { Topic } from "./topic.ts";
import { places, type TopicDatabase } from "./topic_database.ts";
import { RowCache } from "./topic_log.ts";

export interface TopicSummary {
  readonly name: string;
  readonly epoch: number;
  readonly sealedFor: string | null;
  readonly first: number;
  readonly last: number;
  readonly bytes: number;
  readonly subscribers: number;
}

export class TopicTable {
  readonly clients: ClientTable;
  readonly #database: TopicDatabase;
  readonly #cache = new RowCache(rowCacheBytesMax);
  readonly #here = new Map<string, Topic>();
  #nextRowId: number;
  #nextTopicId: number;
  readonly #garbage: number[];

  constructor(database: TopicDatabase) {
    this.#database = database;
    this.clients = new ClientTable(database);
    this.#nextRowId = Number(database.get("SELECT max(id) AS id FROM messages")?.["id"] ?? 0) + 1;
    this.#nextTopicId = Number(database.get("SELECT max(seq) AS id FROM sqlite_sequence")?.["id"] ?? 0) + 1;
    this.#garbage = database.all("SELECT id FROM topics WHERE place = ?", places.dropped).map((row) =>
      Number(row["id"])
    );
    for (const { id } of database.all("SELECT id FROM topics WHERE place = ?", places.here)) this.load(Number(id));
  }

  here(name: string): Topic | null {
    return this.#here.get(name) ?? null;
  }

  /** Those that are served or sealed. */
  all(): Iterable<Topic> {
    return this.#here.values();
  }

  get count(): number {
    return this.#here.size;
  }

  /** Ids of rows of messages, which are never given twice. */
  readonly nextRowId = (): number => this.#nextRowId++;

  summaries(): TopicSummary[] {
    return [...this.#here.values()].map(({ name, epoch, sealedFor, log, subscribers }) => ({
      name,
      epoch,
      sealedFor,
      first: log.first,
      last: log.last,
      bytes: log.bytes,
      subscribers: subscribers.size,
    }));
  }

  /** A row for a topic, in the open transaction; gives its number. */
  insert(
    topic: Pick<TopicRecord, "name" | "birth" | "floor" | "epoch" | "last">,
    place: number,
    sender: string | null,
  ): number {
    if (this.#here.size >= topicsMax) {
      throw new BatonError(
        "BAD_DATA",
        `Cannot add topic ${JSON.stringify(topic.name)}: ${topicsMax} are a server's limit`,
      );
    }
    const id = this.#nextTopicId++;
    this.#database.run(
      `INSERT INTO topics (id, name, place, birth, floor, epoch, sealed_for, sender, last, bytes)
       VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?, 0)`,
      id,
      nameBytes(topic.name),
      place,
      topic.birth,
      topic.floor,
      topic.epoch,
      sender,
      topic.last,
    );
    return id;
  }

  /** Takes a topic's row into memory, to be served. */
  load(id: number): Topic {
    const row = this.#database.get("SELECT * FROM topics WHERE id = ?", id);
    if (row === undefined) throw new Error(`topic ${id} is missing`);
    const topic = new Topic(row, this.#database, this.clients, this.#cache, this.nextRowId);
    this.#here.set(topic.name, topic);
    return topic;
  }

  /** Its numbers, in the open transaction. */
  write(topic: Topic): void {
    this.#database.run(
      "UPDATE topics SET epoch = ?, sealed_for = ?, last = ?, bytes = ? WHERE id = ?",
      topic.epoch,
      topic.sealedFor,
      topic.log.last,
      topic.log.bytes,
      topic.id,
    );
  }

  /** In the open transaction. Its rows go little by little. */
  drop(id: number): void {
    this.#move(id, places.dropped);
    this.#garbage.push(id);
  }

  /** In the open transaction. Nobody answers from it any more, and nothing is deleted. */
  setAside(id: number): void {
    this.#move(id, places.aside);
  }

  #move(id: number, place: number): void {
    const row = this.#database.get("SELECT name, place FROM topics WHERE id = ?", id);
    this.#database.run("UPDATE topics SET place = ? WHERE id = ?", place, id);
    if (row === undefined || Number(row["place"]) !== places.here) return;
    this.#here.delete(nameOf(row["name"]));
    this.clients.forgetTopic(id);
  }

  get hasGarbage(): boolean {
    return this.#garbage.length > 0;
  }

  /** Deletes some rows of a dropped topic, in the open transaction. */
  collectGarbage(): void {
    const [topic] = this.#garbage;
    if (topic === undefined) return;
    const most = deletedRowsPerCommitMax;
    const some = (table: string) =>
      this.#database.all(`SELECT id FROM ${table} WHERE topic = ? LIMIT ?`, topic, most).map((row) =>
        Number(row["id"])
      );
    const rows = some("messages");
    for (const id of rows) {
      this.#database.run("DELETE FROM messages WHERE id = ?", id);
      this.#cache.delete(id);
    }
    if (rows.length > 0) return;
    const clients = some("clients");
    for (const id of clients) {
      for (const table of ["windows", "resolved", "msg_ids"]) {
        this.#database.run(`DELETE FROM ${table} WHERE client = ?`, id);
      }
      this.#database.run("DELETE FROM clients WHERE id = ?", id);
    }
    if (clients.length > 0) return;
    this.#database.run("DELETE FROM topics WHERE id = ?", topic);
    this.#garbage.shift();
  }
}

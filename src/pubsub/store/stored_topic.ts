/** One topic that a store serves or keeps sealed: its log and its subscribers. */
import type { TopicInfo } from "../../wire/pubsub/store_operations.ts";
import type { StoreOptions } from "./store_options.ts";
import { deletedRowsPerCommitMax } from "./topic_store_limits.ts";
import type { TopicClient } from "./topic_client.ts";
import type { ClientTable } from "./client_table.ts";
import type { RowCache } from "./log_rows.ts";
import { TopicLog } from "./topic_log.ts";
import type { SqlRow, TopicDatabase } from "./topic_database.ts";
import { nameOf } from "./topic_client.ts";

export class StoredTopic {
  readonly id: number;
  readonly name: string;
  readonly log: TopicLog;
  /** By name. */
  readonly subscribers: Map<string, TopicClient>;
  /** Which of the topics that had this name it is; its ids begin behind `baseOffset`. */
  readonly incarnation: string;
  readonly baseOffset: number;
  epoch: number;
  /** The server it is on its way to: nothing is done until it is served in a higher epoch. */
  sealedFor: string | null;
  clientCount: number;
  /** Of those, without a session. */
  plainCount: number;
  /** Grows when publishers are forgotten, so that what they asked for before is not taken for something new. */
  registration: number;
  /** Of whom something is damaged, or missing; which, is not known: places of theirs may be anywhere. Null: of nobody. */
  readonly damagedClients: string | null;
  /** What the slowest subscriber has had; null: not known just now. */
  #slowest: number | null = null;

  constructor(row: SqlRow, database: TopicDatabase, clients: ClientTable, cache: RowCache, nextRowId: () => number) {
    this.id = Number(row["id"]);
    this.name = nameOf(row["name"]);
    this.epoch = Number(row["epoch"]);
    this.incarnation = String(row["incarnation"]);
    this.baseOffset = Number(row["base_offset"]);
    const sealedFor = row["sealed_for"];
    this.sealedFor = typeof sealedFor === "string" ? sealedFor : null;
    const known = clients.rows.load(this.id, this.name, Number(row["clients"]));
    this.registration = Number(row["registration"]);
    this.subscribers = known.subscribers;
    this.clientCount = known.count;
    this.plainCount = known.plain;
    this.damagedClients = known.damaged;
    const ends = { last: Number(row["last"]), gone: Number(row["gone"]), stored: Number(row["stored"]) };
    const log = { id: this.id, name: this.name, bytes: Number(row["bytes"]), ...ends };
    this.log = new TopicLog(database, cache, log, { nextRowId, subscribers: () => this.subscribers.size });
    this.log.count(this.positions());
  }

  /** Whether the oldest row can go: everybody has had it. */
  get canDeleteOldest(): boolean {
    return this.damagedClients === null && this.log.canDeleteOldest;
  }

  *positions(): Generator<number, void, void> {
    for (const { position } of this.subscribers.values()) if (position !== null) yield position;
  }

  /** Puts a subscriber elsewhere; null: it is not, or no longer, one. */
  moveSubscriber(client: TopicClient, position: number | null): void {
    const from = client.position;
    if (from === position) return;
    client.position = position;
    if (position === null) this.subscribers.delete(client.name);
    else this.subscribers.set(client.name, client);
    this.log.moved(from, position);
    if (from === null || position === null || from === this.#slowest || position < (this.#slowest ?? 0)) {
      this.#slowest = null;
    }
  }

  /** Messages behind this place. Between those from before a restore and those after it are numbers that nobody was given. */
  pendingAfter(position: number): number {
    const { first, last } = this.log;
    const from = Math.max(position, first - 1);
    if (from >= this.baseOffset) return last - from;
    return this.log.countUpTo(this.baseOffset, from) + last - (this.baseOffset + 1);
  }

  /** As INFO tells it to this client. */
  infoFor(client: string): TopicInfo {
    const { first, last, bytes } = this.log;
    const position = this.subscribers.get(client)?.position ?? null;
    const pending = position === null ? 0 : this.pendingAfter(position);
    return { first, end: last, position, pending, subscribers: this.subscribers.size, bytes };
  }

  /** Messages that the slowest subscriber has not had. Asks every subscriber, but only after the slowest one has moved. */
  pendingOfSlowest(): number {
    if (this.subscribers.size === 0) return 0;
    if (this.#slowest === null) {
      let slowest = Infinity;
      for (const position of this.positions()) slowest = Math.min(slowest, position);
      this.#slowest = slowest;
    }
    return this.pendingAfter(this.#slowest);
  }
}

/** In the open transaction; so many rows at most. Whether there is more to delete. */
export function trimTopic(topic: StoredTopic, options: StoreOptions, nowMs: number): boolean {
  const { log } = topic;
  for (let rows = 0; rows < deletedRowsPerCommitMax; rows++) {
    if (!topic.canDeleteOldest && !isGivenUp(topic, options, nowMs)) return false;
    log.dropOldest(topic.positions());
  }
  return topic.canDeleteOldest || isGivenUp(topic, options, nowMs);
}

/** A row goes when what is behind it alone reaches the limit: somewhat more stays than was asked for, never less. */
export function isGivenUp(topic: StoredTopic, options: StoreOptions, nowMs: number): boolean {
  const { log } = topic;
  const { oldest } = log;
  if (oldest === null) return false;
  const { retainMessages, retainBytes, retainMs } = options;
  if (retainMessages !== null && topic.pendingAfter(oldest.last) >= retainMessages) return true;
  if (retainBytes !== null && log.bytes - oldest.bytes >= retainBytes) return true;
  return retainMs !== null && nowMs - (log.oldestTimeMs() ?? nowMs) > retainMs;
}

/**
 * A sentence when so many new messages are too many; null otherwise. Where nobody is subscribed nothing is stored. Messages that
 * came together are stored together: those that no limit could ever take have to have room for one of them, and go beyond it.
 */
export function whyFull(
  topic: StoredTopic,
  { maxPending, maxTopicBytes }: Pick<StoreOptions, "maxPending" | "maxTopicBytes">,
  messages: number,
  bodies: readonly Uint8Array[],
): string | null {
  if (topic.subscribers.size === 0) return null;
  if (maxTopicBytes !== null) {
    const [largest, all] = sizesOf(bodies);
    const bytes = topic.log.bytes + (all > maxTopicBytes ? largest : all);
    if (bytes > maxTopicBytes) return `the topic would hold ${bytes} bytes; ${maxTopicBytes} are its limit`;
  }
  if (maxPending === null || topic.log.last - topic.log.first + 1 + messages <= maxPending) return null;
  const pending = topic.pendingOfSlowest();
  if (pending + (messages > maxPending ? 1 : messages) <= maxPending) return null;
  const more = messages === 1 ? "" : `, and ${messages} come together`;
  return `${pending} messages wait for the slowest subscriber${more}; ${maxPending} are the limit`;
}

/** In bytes: of the largest, and of all. */
function sizesOf(bodies: readonly Uint8Array[]): [largest: number, all: number] {
  let [largest, all] = [0, 0];
  for (const { byteLength } of bodies) {
    largest = Math.max(largest, byteLength);
    all += byteLength;
  }
  return [largest, all];
}

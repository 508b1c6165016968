/** A topic in the memory of its store. Decides which messages retention deletes, and when the topic is full. */
import { noMessageId } from "../../wire/field_types.ts";
import type { PubsubHeaders } from "../../wire/pubsub_messages.ts";
import type { TopicStoreOptions } from "../limits/topic_store_limits.ts";
import type { TopicClient } from "../rows/topic_client.ts";
import { TopicLog } from "./topic_log.ts";
import { TopicLosses } from "../decisions/topic_losses.ts";
import type { OpenedTopic, TopicRow } from "../rows/topic_rows.ts";

/** A topic that a store serves, in memory: its log and its subscribers. */
export class StoredTopic {
  readonly id: number;
  readonly name: string;
  readonly log: TopicLog;
  readonly subscribers: Map<string, TopicClient>;
  /** An ID of the content. The message IDs of the content are greater than `baseOffset`. */
  readonly incarnation: string;
  readonly baseOffset: number;
  epoch: number;
  /**
   * The server that receives the sealed topic; null if the topic is not sealed. A sealed topic executes no operation
   * until it is opened at a higher epoch.
   */
  sealedFor: string | null;
  clientCount: number;
  /** The number of clients without a session. */
  plainCount: number;
  /**
   * A number that increases when the topic forgets publishers. The topic then does not treat their earlier requests as
   * new.
   */
  registration: number;
  /** Describes damaged or missing clients, whose positions are unknown; null if there are none. */
  readonly damagedClients: string | null;
  readonly losses: TopicLosses;
  /** The position of the slowest subscriber; null if it must be computed again. */
  #slowest: number | null = null;

  constructor({ row, clients, messages, losses }: OpenedTopic, nextRowId: (first: number) => number) {
    this.losses = new TopicLosses(losses);
    this.id = row.id;
    this.name = row.name;
    this.epoch = row.epoch;
    this.incarnation = row.incarnation;
    this.baseOffset = row.baseOffset;
    this.sealedFor = row.sealedFor;
    this.registration = row.registration;
    this.subscribers = clients.subscribers;
    this.clientCount = clients.count;
    this.plainCount = clients.plain;
    this.damagedClients = clients.damaged;
    this.log = new TopicLog(messages, row, { nextRowId, subscribers: () => this.subscribers.size });
    this.log.countSubscribersOfOldestRow(this.subscriberPositions());
  }

  row(): TopicRow {
    const { id, name, incarnation, baseOffset, epoch, sealedFor, clientCount: clients, registration } = this;
    const { lastId: last, gone, stored, bytes } = this.log;
    return { id, name, incarnation, baseOffset, epoch, sealedFor, last, gone, stored, bytes, clients, registration };
  }

  get canDeleteOldest(): boolean {
    return this.damagedClients === null && this.log.canDeleteOldest;
  }

  *subscriberPositions(): Generator<number, void, void> {
    for (const { position } of this.subscribers.values()) if (position !== null) yield position;
  }

  /** Moves a subscriber to a position. If the position is null, the client is no longer subscribed. */
  moveSubscriber(subscriber: TopicClient, position: number | null): void {
    const from = subscriber.position;
    if (from === position) return;
    subscriber.position = position;
    if (position === null) this.subscribers.delete(subscriber.name);
    else this.subscribers.set(subscriber.name, subscriber);
    this.log.noteSubscriberMove(from, position);
    if (from === null || position === null || from === this.#slowest || position < (this.#slowest ?? 0)) {
      this.#slowest = null;
    }
  }

  /** Returns the number of messages after this position. IDs that a restore has skipped do not count. */
  pendingAfter(position: number): number {
    const { firstId: first, lastId: last } = this.log;
    const from = Math.max(position, first - 1);
    if (from >= this.baseOffset) return last - from;
    return this.log.messages.countBetween(from, this.baseOffset) + last - (this.baseOffset + 1);
  }

  /** Returns the headers of the response to this client's INFO. */
  infoFor(client: string): PubsubHeaders {
    const { firstId: first, lastId: last, bytes } = this.log;
    const position = this.subscribers.get(client)?.position ?? null;
    const pending = position === null ? 0 : this.pendingAfter(position);
    const subscribers = this.subscribers.size;
    return { position: position ?? noMessageId, first, end: last, pending, subscribers, bytes, state: "serving" };
  }

  /**
   * Returns the number of undelivered messages of the slowest subscriber. Looks at all subscribers only after the
   * slowest one has moved.
   */
  pendingOfSlowest(): number {
    if (this.subscribers.size === 0) return 0;
    if (this.#slowest === null) {
      let slowest = Infinity;
      for (const position of this.subscriberPositions()) slowest = Math.min(slowest, position);
      this.#slowest = slowest;
    }
    return this.pendingAfter(this.#slowest);
  }
}

/** How many rows the next commit may still delete from a topic. */
export interface RowDeletionBudget {
  rows: number;
}

/**
 * Deletes, with the next commit, the messages that every subscriber has acknowledged and the messages beyond the
 * retention limits. Deletes at most as many rows as `budget` allows. Returns true if more rows could be deleted.
 */
export function deleteOldTopicRows(
  topic: StoredTopic,
  options: TopicStoreOptions,
  nowMs: number,
  budget: RowDeletionBudget,
): boolean {
  const { log } = topic;
  for (; budget.rows > 0; budget.rows--) {
    if (!topic.canDeleteOldest && !retentionDeletesOldestRow(topic, options, nowMs)) return false;
    log.dropOldest(topic.subscriberPositions());
  }
  return topic.canDeleteOldest || retentionDeletesOldestRow(topic, options, nowMs);
}

/**
 * Returns true if retention deletes the oldest row. While a limit still covers one of its messages, the row is kept, so
 * the topic keeps slightly more messages than the limit requires.
 */
export function retentionDeletesOldestRow(topic: StoredTopic, options: TopicStoreOptions, nowMs: number): boolean {
  const { log } = topic;
  const { oldestRow: oldest } = log;
  if (oldest === null) return false;
  const { retainMessages, retainBytes, retainMs } = options;
  if (retainMessages !== null && topic.pendingAfter(oldest.last) >= retainMessages) return true;
  if (retainBytes !== null && log.bytes - oldest.bytes >= retainBytes) return true;
  return retainMs !== null && nowMs - (log.oldestTimeMs() ?? nowMs) > retainMs;
}

/**
 * Returns the reason why these new messages exceed the topic's limits; null if they do not. A topic without subscribers
 * stores nothing and is never full. A batch that alone exceeds a limit is accepted as a whole if one of its messages
 * fits.
 */
export function whyTopicFull(
  topic: StoredTopic,
  { maxPending, maxTopicBytes }: Pick<TopicStoreOptions, "maxPending" | "maxTopicBytes">,
  messages: number,
  bodies: readonly Uint8Array[],
): string | null {
  if (topic.subscribers.size === 0) return null;
  if (maxTopicBytes !== null) {
    const [largest, all] = bodySizesOf(bodies);
    const bytes = topic.log.bytes + (all > maxTopicBytes ? largest : all);
    if (bytes > maxTopicBytes) return `the topic would have ${bytes} bytes; its limit is ${maxTopicBytes}`;
  }
  if (maxPending === null || topic.log.lastId - topic.log.firstId + 1 + messages <= maxPending) return null;
  const pending = topic.pendingOfSlowest();
  if (pending + (messages > maxPending ? 1 : messages) <= maxPending) return null;
  const more = messages === 1 ? "" : `, and ${messages} more in this batch`;
  return `${pending} undelivered messages for the slowest subscriber${more}; the limit is ${maxPending}`;
}

/** Returns the size of the largest body and of all bodies together, in bytes. */
function bodySizesOf(bodies: readonly Uint8Array[]): [largest: number, all: number] {
  let largest = 0;
  let all = 0;
  for (const { byteLength } of bodies) {
    largest = Math.max(largest, byteLength);
    all += byteLength;
  }
  return [largest, all];
}

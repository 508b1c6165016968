/** What an operator does at one topic of a store: looks, has a client forgotten, gives up what is damaged. Each a transaction. */
import { BatonError } from "../../errors.ts";
import { DamageError } from "../../storage/damage.ts";
import { counted } from "../../support/text.ts";
import type { TopicClient } from "./topic_client.ts";
import { repairTopic } from "./repair_topic.ts";
import type { StoreEngine } from "./store_engine.ts";
import type { StoredTopic } from "./stored_topic.ts";
import type { TopicDatabase } from "./topic_database.ts";

export interface TopicDetails {
  readonly epoch: number;
  /** The oldest message that is there, and the newest that was given; one behind it when there is none. */
  readonly first: number;
  readonly end: number;
  readonly bytes: number;
  readonly clients: number;
  /** Of those, without a session: the topic never forgets them. */
  readonly plainClients: number;
  readonly clientsMax: number;
  readonly subscribers: number;
  /** Those that lag behind most, most first. */
  readonly slowest: readonly { readonly client: string; readonly position: number; readonly pending: number }[];
  /** What is wrong with its clients, as a sentence; null: nothing that is known. */
  readonly damage: string | null;
}

/** Subscribers of a topic that are shown. */
const subscribersShownMax = 1000;

export class TopicMaintenance {
  readonly #database: TopicDatabase;
  readonly #engine: StoreEngine;

  constructor(database: TopicDatabase, engine: StoreEngine) {
    this.#database = database;
    this.#engine = engine;
  }

  show(name: string, epoch: number): TopicDetails {
    const topic = this.#serving(name, epoch);
    const { log: { first, last, bytes }, clientCount, plainCount, subscribers } = topic;
    const places = [...subscribers.values()].map(({ name: client, position }) => ({
      client,
      position: position ?? 0,
      pending: topic.pendingAfter(position ?? 0),
    }));
    const slowest = places.sort((a, b) => b.pending - a.pending || (a.client < b.client ? -1 : 1));
    return {
      ...{ epoch, first, end: last, bytes, clients: clientCount, plainClients: plainCount },
      clientsMax: this.#engine.capacity.max,
      subscribers: subscribers.size,
      slowest: slowest.slice(0, subscribersShownMax),
      damage: topic.damagedClients,
    };
  }

  /**
   * Forgets a client and all that is stored of it. Throws NOT_FOUND for one that the topic does not know, and USAGE for one that is
   * subscribed, or whose repetitions could not be told from new messages afterwards, unless the loss is accepted.
   */
  forgetClient(name: string, epoch: number, clientName: string, acceptsLoss: boolean): void {
    const topic = this.#serving(name, epoch);
    this.#engine.settle();
    const client = this.#find(topic, clientName);
    const loss = acceptsLoss ? null : this.#lossOf(topic, client);
    if (loss !== null) {
      throw new BatonError(
        "USAGE",
        `Client ${JSON.stringify(clientName)} ${loss}: --accept-loss forgets it all the same`,
      );
    }
    this.#transaction(() => {
      topic.moveSubscriber(client, null);
      this.#engine.topics.clients.forget(client);
      topic.clientCount--;
      if (client.session === 0) topic.plainCount--;
      topic.registration++;
      this.#engine.topics.write(topic);
    });
    this.#engine.subscribersRemoved(topic);
    this.#engine.wakeAll(topic);
  }

  /** Gives up all that is damaged of a topic, so that the rest is served; says what that was. */
  repair(name: string, epoch: number): string[] {
    const topic = this.#serving(name, epoch);
    this.#engine.settle();
    let done: string[] = [];
    this.#transaction(() => done = repairTopic(this.#database, this.#engine.topics, topic));
    this.#database.checkIndexesAgain();
    if (done.length === 0) return done;
    this.#engine.topics.clients.forgetTopic(topic.id);
    this.#engine.topics.load(topic.id);
    this.#engine.wakeAll(topic);
    return done;
  }

  #find(topic: StoredTopic, name: string): TopicClient {
    const { clients } = this.#engine.topics;
    let client: TopicClient | null;
    try {
      client = topic.subscribers.get(name) ?? clients.findUnsubscribed(topic.id, name);
    } catch (error) {
      if (!(error instanceof DamageError)) throw error;
      throw new BatonError("BAD_DATA", `${error.message}: baton pubsub topic repair gives up what is damaged`);
    }
    if (client !== null) return client;
    throw new BatonError(
      "NOT_FOUND",
      `Topic ${JSON.stringify(topic.name)} does not know a client ${JSON.stringify(name)}`,
    );
  }

  /** Why it should not be forgotten; null: nothing is lost by it. */
  #lossOf(topic: StoredTopic, client: TopicClient): string | null {
    if (client.position !== null) {
      return `is subscribed, with ${counted(topic.pendingAfter(client.position), "message")} that it has not had`;
    }
    const state = this.#engine.topics.clients.rows.resolution(client);
    if (state === "unresolved") {
      return "may have puts that it does not know the end of, and could not settle them any more";
    }
    return state === "kept"
      ? "has put under msg-ids, or without a session, and what it puts again would be stored again"
      : null;
  }

  #serving(name: string, epoch: number): StoredTopic {
    const topic = this.#engine.topics.get(name);
    if (topic !== null && topic.epoch === epoch && topic.sealedFor === null) return topic;
    throw new BatonError("STALE_TOKEN", `Topic ${JSON.stringify(name)} is not served here in epoch ${epoch}`);
  }

  #transaction(work: () => void): void {
    this.#database.begin();
    try {
      work();
    } catch (error) {
      this.#database.rollBack();
      throw error;
    }
    this.#database.commit();
  }
}

/** Shows a topic to an operator, forgets a client of a topic, or repairs a topic. Each action is one transaction. */
import { BatonError } from "../../../base/errors.ts";
import { DamageError } from "../../../base/storage/damage.ts";
import { countWithNoun } from "../../../base/support/text.ts";
import type { TopicClient } from "../rows/topic_client.ts";
import type { StoreEngine } from "./store_engine.ts";
import type { StoredTopic } from "../content/stored_topic.ts";
import type { TopicDetails } from "../operations/topic_details.ts";
import { awaitAnswer, type StepGenerator } from "../../../base/support/steps.ts";
import { runWithLoadedData } from "../rows/loaded_data.ts";
import type { TopicRows } from "../rows/topic_rows.ts";

const subscribersShownMax = 1000;

export class TopicMaintenance {
  readonly #rows: TopicRows;
  readonly #engine: StoreEngine;

  constructor(rows: TopicRows, engine: StoreEngine) {
    this.#rows = rows;
    this.#engine = engine;
  }

  *show(name: string, epoch: number): StepGenerator<TopicDetails> {
    const topic = this.#requireServedTopic(name, epoch);
    return yield* runWithLoadedData(this.#rows, () => this.#detailsOf(topic, epoch));
  }

  #detailsOf(topic: StoredTopic, epoch: number): TopicDetails {
    const { log: { firstId: first, lastId: last, bytes }, clientCount, plainCount, subscribers } = topic;
    const places = [...subscribers.values()].map(({ name: client, position }) => ({
      client,
      position: position ?? 0,
      pending: topic.pendingAfter(position ?? 0),
    }));
    const slowest = places.sort((a, b) => b.pending - a.pending || (a.client < b.client ? -1 : 1));
    return {
      epoch,
      first,
      end: last,
      bytes,
      clients: clientCount,
      plainClients: plainCount,
      clientsMax: this.#engine.capacity.max,
      subscribers: subscribers.size,
      slowest: slowest.slice(0, subscribersShownMax),
      undeliveredSinceMs: topic.log.timeAfterMs(slowest[0]?.position ?? last),
      damage: topic.damagedClients,
    };
  }

  /**
   * Forgets a client and all its data. Throws NOT_FOUND for an unknown client. Throws USAGE if the client is a
   * subscriber or may still repeat puts, unless the operator accepts the loss.
   */
  *forgetClient(name: string, epoch: number, clientName: string, acceptsLoss: boolean): StepGenerator {
    const topic = this.#requireServedTopic(name, epoch);
    yield* this.#engine.writePending();
    const client = yield* runWithLoadedData(this.#rows, () => this.#requireClient(topic, clientName));
    const loss = acceptsLoss ? null : yield* runWithLoadedData(this.#rows, () => this.#lossByForgetting(topic, client));
    if (loss !== null) {
      throw new BatonError(
        "USAGE",
        `Client ${JSON.stringify(clientName)} ${loss}; to forget it anyway: --accept-loss`,
      );
    }
    topic.moveSubscriber(client, null);
    this.#engine.topics.clients.forgetClient(client);
    topic.clientCount--;
    if (client.session === 0) topic.plainCount--;
    topic.registration++;
    yield* this.#engine.commitChanged(topic);
    yield* this.#engine.wakeHeldGets(topic);
  }

  /**
   * Gives up all damaged data of a topic, so that the rest can be served. Returns descriptions of the data that was
   * given up.
   */
  *repair(name: string, epoch: number): StepGenerator<string[]> {
    const topic = this.#requireServedTopic(name, epoch);
    yield* this.#engine.writePending();
    // The disk may have damaged data since the topic was loaded.
    const loaded = yield* this.#loadAgain(topic);
    const done = yield* awaitAnswer(this.#rows.repair(loaded.row(), loaded.damagedClients !== null));
    yield* this.#loadAgain(topic);
    yield* this.#engine.wakeHeldGets(topic);
    return done;
  }

  #loadAgain({ id }: StoredTopic): StepGenerator<StoredTopic> {
    const { topics } = this.#engine;
    this.#rows.checkIndexesAgain();
    topics.clients.forgetTopic(id);
    return topics.load(id);
  }

  #requireClient(topic: StoredTopic, name: string): TopicClient {
    const { clients } = this.#engine.topics;
    let client: TopicClient | null;
    try {
      client = topic.subscribers.get(name) ?? clients.findUnsubscribed(topic.id, name);
    } catch (error) {
      if (!(error instanceof DamageError)) throw error;
      throw new BatonError("BAD_DATA", `${error.message}: to give up damaged data: baton pubsub topic repair`);
    }
    if (client !== null) return client;
    throw new BatonError(
      "NOT_FOUND",
      `Topic ${JSON.stringify(topic.name)} has no client ${JSON.stringify(name)}`,
    );
  }

  /** Returns what would be lost if the client were forgotten; null if nothing would be lost. */
  #lossByForgetting(topic: StoredTopic, client: TopicClient): string | null {
    if (client.position !== null) {
      return `is subscribed, with ${countWithNoun(topic.pendingAfter(client.position), "undelivered message")}`;
    }
    const state = this.#engine.topics.clients.putResolution(client);
    if (state === "unresolved") {
      return "may have puts whose outcome it does not know, and could no longer settle them";
    }
    return state === "kept" ? "has put with msg-ids or without a session: a repeated put would be stored again" : null;
  }

  #requireServedTopic(name: string, epoch: number): StoredTopic {
    const topic = this.#engine.topics.get(name);
    if (topic !== null && topic.epoch === epoch && topic.sealedFor === null) return topic;
    throw new BatonError("STALE_TOKEN", `Topic ${JSON.stringify(name)} is not served here in epoch ${epoch}`);
  }
}

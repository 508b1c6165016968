/**
 * Limits the number of a topic's clients, and decides which publishers the topic forgets to make room. Reserves a share
 * of the clients for subscribers. Clients without sessions have their own limit, because a topic can never forget them
 * safely.
 */
import type { ClientOperation } from "../operations/store_operations.ts";
import type { TopicClient } from "../rows/topic_client.ts";
import type { ClientsInMemory } from "./client_table.ts";
import { publishersForgottenMax } from "../limits/topic_store_limits.ts";
import type { TopicStoreOptions } from "../limits/topic_store_limits.ts";
import type { StoredTopic } from "../content/stored_topic.ts";

/**
 * Shares of a topic's client limit: the most publishers, the most clients without a session, and the recently active
 * clients, which are never forgotten.
 */
const publisherShare = 0.75;
const plainShare = 0.5;
const recentShare = 0.1;
const warningShare = 0.8;
/**
 * The number of candidates that the topic examines for each publisher that it forgets. Some candidates may have puts
 * with an unknown outcome.
 */
const candidates = 2;

export class ClientCapacity {
  readonly #clients: ClientsInMemory;
  readonly max: number;
  readonly #warn: (sentence: string) => void;
  readonly #warned = new Set<string>();
  forgottenCount = 0;

  constructor(
    clients: ClientsInMemory,
    { clientsMax }: Pick<TopicStoreOptions, "clientsMax">,
    warn: (sentence: string) => void,
  ) {
    this.#clients = clients;
    this.max = clientsMax;
    this.#warn = warn;
  }

  /**
   * Returns the reason why a new client is refused; null if it is not. May forget other clients to make room; the
   * caller must commit that.
   */
  whyFull(topic: StoredTopic, { kind, session }: ClientOperation): string | null {
    const max = this.max;
    if (kind === "subscribe") {
      if (topic.clientCount >= max) this.#forgetOldest(topic);
      if (topic.clientCount >= max) return fullReason(topic.clientCount, "clients", max);
    } else {
      if (session === null && topic.plainCount >= max * plainShare) {
        return fullReason(topic.plainCount, "clients without a session", max * plainShare);
      }
      const publishers = () =>
        Math.max(topic.clientCount - topic.subscribers.size, topic.clientCount - max * (1 - publisherShare));
      if (publishers() >= max * publisherShare) this.#forgetOldest(topic);
      if (publishers() >= max * publisherShare) return fullReason(publishers(), "publishers", max * publisherShare);
    }
    this.#warnIfNearlyFull(topic);
    return null;
  }

  /** The used share of the capacity, from 0 to 1. */
  usedShareOf(topic: StoredTopic): number {
    return Math.max(topic.clientCount / this.max, topic.plainCount / (this.max * plainShare));
  }

  /**
   * Forgets the oldest publishers that have never subscribed, have no msg-ids and were not active recently. Prefers
   * publishers that have no puts with an unknown outcome. From now on, the topic refuses their earlier requests, so
   * that no message is stored twice.
   */
  #forgetOldest(topic: StoredTopic): void {
    const recent = new Set(this.#clients.recentlyActiveNames(topic.id, Math.ceil(this.max * recentShare)));
    const most = Math.min(publishersForgottenMax, Math.ceil(this.max / 10));
    const resolved: TopicClient[] = [];
    const others: TopicClient[] = [];
    for (const client of this.#clients.oldestPublishers(topic.id, candidates * most + recent.size)) {
      if (recent.has(client.name)) continue;
      const state = this.#clients.putResolution(client);
      if (state === "resolved") resolved.push(client);
      else if (state === "unresolved" && others.length < most) others.push(client);
      if (resolved.length === most) break;
    }
    const forgotten = resolved.length > 0 ? resolved : others;
    if (forgotten.length === 0) return;
    for (const client of forgotten) this.#clients.forgetClient(client);
    topic.clientCount -= forgotten.length;
    topic.registration++;
    this.forgottenCount += forgotten.length;
  }

  #warnIfNearlyFull(topic: StoredTopic): void {
    if (this.usedShareOf(topic) < warningShare || this.#warned.has(topic.name)) return;
    this.#warned.add(topic.name);
    const plain = topic.plainCount > 0 ? `, ${topic.plainCount} of them without a session` : "";
    this.#warn(
      `topic ${JSON.stringify(topic.name)} has ${topic.clientCount} clients${plain}: above ${this.max} (` +
        `${
          this.max * plainShare
        } without a session) new ones are refused; to remove one: baton pubsub server forget-client`,
    );
  }
}

function fullReason(count: number, what: string, max: number): string {
  return `the topic has ${count} ${what}, the limit is ${max}; to remove one: baton pubsub server forget-client`;
}

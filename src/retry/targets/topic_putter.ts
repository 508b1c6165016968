/**
 * Puts messages into a topic under message IDs. If several puts have the same message ID, the server stores only one of
 * them, as long as the ID is among the last 10,000 of the client. So a put with an unknown outcome is repeated, and is
 * not recorded here.
 */
import { BatonError } from "../../base/errors.ts";
import type { PubsubClientSession } from "../../pubsub/client/pubsub_client_session.ts";
import type { PubsubRequestOutcome } from "../../pubsub/client/requester.ts";
import { destinationCheckTimeoutMs } from "../check_destination.ts";

export class TopicPutter {
  readonly topic: string;
  readonly #client: PubsubClientSession;
  #counter = 0;
  /** The counters of puts in flight. */
  readonly #countersInFlight = new Set<number>();

  constructor(client: PubsubClientSession, topic: string) {
    this.#client = client;
    this.topic = topic;
  }

  /**
   * Puts a message. Returns the outcome. If the signal aborts, rejects with its reason, and the outcome of the put is
   * unknown.
   */
  async put(msgId: string, body: Uint8Array, signal: AbortSignal): Promise<PubsubRequestOutcome> {
    const counter = ++this.#counter;
    this.#countersInFlight.add(counter);
    try {
      // Older puts may still be on their way. The server ignores them, because their message IDs are put again.
      const headers = { firstUnacked: Math.min(...this.#countersInFlight), msgId };
      return await this.#client.request({ name: "PUT", topic: this.topic, counter, body, headers }, { signal });
    } finally {
      this.#countersInFlight.delete(counter);
    }
  }

  /**
   * Checks that messages can be put into the topic. Rejects with CONFIG if the topic has no subscriber, or with the
   * error of the request.
   */
  async check(signal: AbortSignal): Promise<void> {
    const { topic } = this;
    const why = `Topic "${topic}" has no subscriber: messages would be lost`;
    let subscribers: number;
    try {
      // The request ends before the check does, because the error of the request says why there was no response.
      const withinMs = destinationCheckTimeoutMs * 0.9;
      ({ subscribers = 0 } = await this.#client.info(topic, { signal, withinMs }));
    } catch (error) {
      if (!(error instanceof BatonError) || error.code !== "NOT_SUBSCRIBED") throw error;
      subscribers = 0; // the topic does not exist
    }
    if (subscribers === 0) throw new BatonError("CONFIG", why);
  }
}

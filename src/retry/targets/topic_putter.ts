/**
 * Puts messages into a topic under message IDs. The server stores one of several puts with the same message ID, if the
 * ID is among the last 10,000 of the client. So a put with an unknown outcome is repeated, and not recorded here.
 */
import { BatonError } from "../../base/errors.ts";
import type { PubsubClientSession } from "../../pubsub/client/pubsub_client_session.ts";
import type { PubsubRequestOutcome } from "../../pubsub/client/requester.ts";
import { destinationCheckTimeoutMs } from "../check_destination.ts";

export class TopicPutter {
  readonly topic: string;
  readonly #client: PubsubClientSession;
  #counter = 0;
  /** Counters of puts in flight. */
  readonly #countersInFlight = new Set<number>();

  constructor(client: PubsubClientSession, topic: string) {
    this.#client = client;
    this.topic = topic;
  }

  /** Puts a message. Rejects with the reason of the signal; then the outcome of the put is unknown. */
  async put(msgId: string, body: Uint8Array, signal: AbortSignal): Promise<PubsubRequestOutcome> {
    const counter = ++this.#counter;
    this.#countersInFlight.add(counter);
    try {
      // The server ignores older puts that may still be on their way, because their message IDs are put again.
      const headers = { firstUnacked: Math.min(...this.#countersInFlight), msgId };
      return await this.#client.request({ name: "PUT", topic: this.topic, counter, body, headers }, { signal });
    } finally {
      this.#countersInFlight.delete(counter);
    }
  }

  /** Checks the topic. Rejects with CONFIG if it has no subscriber, or with the error of the request. */
  async check(signal: AbortSignal): Promise<void> {
    const { topic } = this;
    const why = `Topic "${topic}" has no subscriber: messages would be lost`;
    let subscribers: number;
    try {
      // The request ends before the check does, because its error says why there was no response.
      const withinMs = destinationCheckTimeoutMs * 0.9;
      ({ subscribers = 0 } = await this.#client.info(topic, { signal, withinMs }));
    } catch (error) {
      if (!(error instanceof BatonError) || error.code !== "NOT_SUBSCRIBED") throw error;
      subscribers = 0; // the topic does not exist
    }
    if (subscribers === 0) throw new BatonError("CONFIG", why);
  }
}

/**
 * Puts messages into a topic under names of their own. The server keeps one of several puts of one name, whatever process they come from,
 * as long as it is among the last 10,000 names of the client: so nothing has to be noted here of a put whose outcome is not known.
 */
import { BatonError } from "../../errors.ts";
import type { PubsubClientSession } from "../../pubsub/client/pubsub_client_session.ts";
import type { RequestOutcome } from "../../pubsub/client/requester.ts";

export class TopicPutter {
  readonly topic: string;
  readonly #client: PubsubClientSession;
  #counter = 0;
  /** Counters of puts that are under way. */
  readonly #open = new Set<number>();

  constructor(client: PubsubClientSession, topic: string) {
    this.#client = client;
    this.topic = topic;
  }

  /** Rejects with the signal's reason; what became of the put nobody knows then. */
  async put(msgId: string, body: Uint8Array, signal: AbortSignal): Promise<RequestOutcome> {
    const counter = ++this.#counter;
    this.#open.add(counter);
    try {
      // What is below is given up: should it still be on its way, the server takes it for old. Its name is put again.
      const headers = { firstUnacked: Math.min(...this.#open), msgId };
      return await this.#client.request({ name: "PUT", topic: this.topic, counter, body, headers }, { signal });
    } finally {
      this.#open.delete(counter);
    }
  }

  /** Rejects with CONFIG when nobody would get what is put, and with what the question is refused for. */
  async check(signal: AbortSignal): Promise<void> {
    const { topic } = this;
    const nobody = `Nobody subscribes to the topic "${topic}": what is put there would reach nobody`;
    let subscribers: number;
    try {
      ({ subscribers = 0 } = await this.#client.info(topic, { signal }));
    } catch (error) {
      if (!(error instanceof BatonError) || error.code !== "NOT_SUBSCRIBED") throw error;
      subscribers = 0; // there is no such topic
    }
    if (subscribers === 0) throw new BatonError("CONFIG", nobody);
  }
}

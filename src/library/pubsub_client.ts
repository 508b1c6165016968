/** A publish/subscribe client of a program. Its client ID stays the same when the program starts again. */
import { checkPubsubName } from "../pubsub/client/client_limits.ts";
import { requestTopicNames } from "../pubsub/client/pubsub_client_session.ts";
import { type PubsubCallOptions, type PubsubClientOptions, PubsubConnection } from "./pubsub_connection.ts";
import { TopicPublisher } from "./topic_publisher.ts";
import { TopicSubscriber } from "./topic_subscriber.ts";

export class PubsubClient implements AsyncDisposable {
  readonly id: string;
  readonly #connection: PubsubConnection;
  readonly #publishers = new Map<string, TopicPublisher>();
  readonly #subscribers = new Map<string, TopicSubscriber>();
  #closing: Promise<void> | null = null;

  /**
   * Names the client. Opens nothing before the first call. `id` is 1 to 1,024 bytes of text. Only one process uses an
   * ID at a time; the next process continues at the same positions. Throws USAGE for an invalid ID, option or address,
   * or CONFIG for unusable keys.
   */
  constructor(id: string, options: PubsubClientOptions = {}) {
    checkPubsubName("client ID", id);
    this.id = id;
    this.#connection = new PubsubConnection(id, options);
  }

  /**
   * Returns the publisher of a topic; all calls for a topic return the same object. Throws USAGE for an invalid name.
   */
  publisher(topic: string): TopicPublisher {
    const known = this.#publishers.get(topic);
    if (known !== undefined) return known;
    checkPubsubName("topic", topic);
    const publisher = new TopicPublisher(this.#connection, topic);
    this.#publishers.set(topic, publisher);
    return publisher;
  }

  /**
   * Returns the subscriber of a topic; all calls for a topic return the same object. Throws USAGE for an invalid name.
   */
  subscriber(topic: string): TopicSubscriber {
    const known = this.#subscribers.get(topic);
    if (known !== undefined) return known;
    checkPubsubName("topic", topic);
    const subscriber = new TopicSubscriber(this.#connection, topic);
    this.#subscribers.set(topic, subscriber);
    return subscriber;
  }

  /** Lists the names of all topics, sorted. Rejects with UNREACHABLE (no server responded within `wait`) or REFUSED. */
  topics(options: PubsubCallOptions = {}): Promise<string[]> {
    return requestTopicNames(this.#connection.requester, this.id, this.#connection.limitsOf(options));
  }

  /**
   * Waits for the puts in flight, at most until their time limits. Then ends all other calls with an AbortError, and
   * closes the connection and the state.
   */
  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#publishers.values()].map((publisher) => publisher.close()));
    await this.#connection.close();
  }
}

/**
 * The losses of messages that fail-overs of a topic's database have caused, and the headers that report them to
 * clients. A subscriber gets the header with the first messages after a loss, until the subscriber acknowledges one of
 * these messages. Pure.
 */
import type { PubsubHeaders } from "../../wire/pubsub_messages.ts";
import type { PutOperation } from "../operations/store_operations.ts";

export interface MessageLoss {
  /** True if confirmed messages are certainly missing; false if they may be missing. */
  readonly isCertain: boolean;
  /** The last message before the lost messages. */
  readonly last: number;
  /** The last of the lost messages; null if unknown. */
  readonly lastLost: number | null;
  /** Messages that were put after the loss have IDs greater than this one. */
  readonly baseOffset: number;
  /** Clients that existed at the time of the loss have numbers up to this one. */
  readonly lastClient: number;
  readonly atMs: number;
}

/**
 * The most losses of a topic that the database keeps, and for how many days. Subscribers are told about these losses,
 * and doctor lists them.
 */
export const topicLossesKept = 16;
export const topicLossDaysKept = 30;
/**
 * How long a loss is reported to publishers, in milliseconds. Each server that owns the topic tells each publisher only
 * one time.
 */
const publisherMs = 86_400_000;

export class TopicLosses {
  readonly #losses: readonly MessageLoss[];
  /** The session and counter of the put whose response reported the losses, by the publisher's number. */
  readonly #told = new Map<number, string>();

  constructor(losses: readonly MessageLoss[] = []) {
    // Commits without messages, for example of positions only, may be lost, too. For clients, that is no loss.
    this.#losses = losses.filter(({ last, lastLost }) => lastLost === null || lastLost > last);
  }

  /**
   * Returns the headers that report losses in the response to a put. A publisher gets them only one time; if it repeats
   * this put, it gets them again.
   */
  forPut(
    client: number,
    { session, counter }: Pick<PutOperation, "session" | "counter">,
    nowMs: number,
  ): PubsubHeaders {
    if (this.#losses.length === 0) return {};
    const put = `${session?.number} ${counter}`;
    const losses = this.#losses.filter(({ lastClient, atMs }) => client <= lastClient && nowMs - atMs < publisherMs);
    if (losses.length === 0 || (this.#told.get(client) ?? put) !== put) return {};
    this.#told.set(client, put);
    return { loss: certaintyOf(losses) };
  }

  /**
   * Returns headers for a response with messages from `first` on. `position` is the last message that the subscriber
   * has acknowledged. `received` is the last message that the subscriber says it has received; that message may be
   * lost. `missed` is the number of lost messages that the subscriber has not received, as far as they are known.
   */
  forMessages({ first, client, position, received }: {
    readonly first: number;
    readonly client: number;
    readonly position: number;
    readonly received: number;
  }): { readonly loss?: "certain" | "possible"; readonly missed: number } {
    // A subscriber that had received all lost messages was moved to the end of their ids.
    const losses = this.#losses.filter(({ baseOffset, lastClient }) =>
      client <= lastClient && first > baseOffset + 1 && Math.max(position, received) <= baseOffset + 1
    );
    if (losses.length === 0) return { missed: 0 };
    const counts = losses.map(({ last, lastLost }) => lastLost === null ? 0 : lastLost - Math.max(last, received));
    const missed = counts.reduce((sum, count) => sum + Math.max(0, count), 0);
    return { loss: certaintyOf(losses), missed };
  }
}

function certaintyOf(losses: readonly MessageLoss[]): "certain" | "possible" {
  return losses.some(({ isCertain }) => isCertain) ? "certain" : "possible";
}

/**
 * Losses of a topic that fail-overs of its database have caused, and which clients are told of them. A subscriber is
 * told with the first message after the lost ones, by whichever server owns the topic then, until it has acknowledged a
 * message after them. Pure.
 */
import type { PubsubHeaders } from "../../wire/pubsub_messages.ts";
import type { PutOperation } from "../operations/store_operations.ts";

export interface MessageLoss {
  /** Messages that were answered OK are missing; false: they may be. */
  readonly isCertain: boolean;
  /** The last message before the lost ones. */
  readonly last: number;
  /** The last of the lost messages; null: unknown. */
  readonly lastLost: number | null;
  /** Messages that were put since have higher ids. */
  readonly baseOffset: number;
  /** The clients of that time have at most this number. */
  readonly lastClient: number;
  /** When it was found, by the clock of this machine. */
  readonly atMs: number;
}

/**
 * The database keeps this many losses of a topic, the latest ones, and for this time. Subscribers are told of them, and
 * doctor names them.
 */
export const topicLossesKept = 16;
export const topicLossDaysKept = 30;
/** Publishers are told for this time, in milliseconds, once by each server that owns the topic. */
const publisherMs = 86_400_000;

export class TopicLosses {
  readonly #losses: readonly MessageLoss[];
  /** Numbers of publishers, each with the session and counter of the put whose response has told it. */
  readonly #told = new Map<number, string>();

  constructor(losses: readonly MessageLoss[] = []) {
    // Commits without messages are no loss for clients: positions, for example.
    this.#losses = losses.filter(({ last, lastLost }) => lastLost === null || lastLost > last);
  }

  /** Headers for the response to a put: once for each publisher, and again for the same put. */
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
   * Headers for messages from `first` on. `position`: the last message that the subscriber has acknowledged;
   * `received`: the last one that it says it has received, which may be a lost one. `missed`: how many lost messages it
   * has not received, if that is known.
   */
  forMessages({ first, client, position, received }: {
    readonly first: number;
    readonly client: number;
    readonly position: number;
    readonly received: number;
  }): { readonly loss?: "certain" | "possible"; readonly missed: number } {
    // A subscriber that had everything was placed behind the lost ids.
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

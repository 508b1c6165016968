/** Operates topics of the publish/subscribe service: lists, inspects, repairs and deletes them. */
import { manageTopic } from "../pubsub/admin/manage_topic.ts";
import type { ManageTopicAction } from "../pubsub/admin/manage_topic.ts";
import { readServerOverview } from "../pubsub/admin/server_overview.ts";
import { PubsubPath } from "../pubsub/ownership/pubsub_path.ts";
import type { TopicDetails } from "../pubsub/store/operations/topic_details.ts";
import { abortable } from "../base/support/abort.ts";
import { systemClock } from "../base/support/clock.ts";
import { readCurveSecretKey } from "../protocols/zeromq/curve_key_file.ts";
import { curveDialOptions } from "../protocols/zeromq/curve_security.ts";
import type { ZeroMqSocketOptions } from "../protocols/zeromq/socket_options.ts";
import { callLimit, type SessionPlace, SessionSource } from "./session_source.ts";
import type { PubsubCallOptions } from "./pubsub_connection.ts";

export interface TopicAdminOptions {
  /** The root in the coordination service; "/baton" when left out. */
  readonly root?: string;
  /** File with the service's key pair, if the service has one. */
  readonly keyFile?: string;
  /** Time limit of a call in milliseconds; 30,000 when left out. */
  readonly wait?: number;
}

export interface TopicEntry {
  readonly topic: string;
  /** ID of the server that owns it. */
  readonly server: string;
  /** False: the server is offline, and the topic is not available. */
  readonly isAvailable: boolean;
}

export interface TopicDeletion extends PubsubCallOptions {
  /** Delete the topic although clients are subscribed: undelivered messages are lost. */
  readonly acceptLoss?: boolean;
}

/** Milliseconds. */
const waitMsDefault = 30_000;

/** All calls reject with UNREACHABLE if no server responded within `wait`, and REFUSED for a wrong key or an ACL. */
export class TopicAdmin implements AsyncDisposable {
  readonly #options: TopicAdminOptions;
  readonly #path: PubsubPath;
  readonly #sessions: SessionSource;
  readonly #socket: ZeroMqSocketOptions | undefined;

  /** Opens nothing before the first call. Throws CONFIG for an unusable key file. */
  constructor(place: SessionPlace, options: TopicAdminOptions = {}) {
    this.#options = options;
    this.#path = new PubsubPath(options.root);
    this.#sessions = new SessionSource(place);
    const key = options.keyFile === undefined ? null : readCurveSecretKey(options.keyFile);
    this.#socket = key === null ? undefined : curveDialOptions(key, key.publicKey);
  }

  /** Lists the topics, sorted by name. */
  list(options: PubsubCallOptions = {}): Promise<TopicEntry[]> {
    return this.#call(options, async (signal) => {
      const servers = await abortable(readServerOverview(await this.#sessions.get(signal), this.#path), signal);
      const entries = servers.flatMap(({ id: server, isAvailable, topics }) =>
        topics.map(({ topic }) => ({ topic, server, isAvailable }))
      );
      return entries.sort((a, b) => a.topic < b.topic ? -1 : 1);
    });
  }

  /** Returns what the topic holds, and its slowest subscribers. Rejects with NOT_FOUND. */
  async show(topic: string, options: PubsubCallOptions = {}): Promise<TopicDetails> {
    return await this.#manage(topic, "show", options) as TopicDetails;
  }

  /**
   * Deletes a topic with all its data. Rejects with USAGE while clients are subscribed, unless `acceptLoss` is true;
   * NOT_FOUND; OUTCOME_UNKNOWN (it may be repeated).
   */
  async delete(topic: string, options: TopicDeletion = {}): Promise<void> {
    await this.#manage(topic, "delete", options);
  }

  /**
   * Gives up damaged data of a topic, so that the rest is served again. Returns what was given up, as sentences.
   * Rejects as `delete`.
   */
  async repair(topic: string, options: PubsubCallOptions = {}): Promise<string[]> {
    return await this.#manage(topic, "repair", { ...options, acceptLoss: true }) as string[];
  }

  /** Closes the connection if this object opened it. */
  async close(): Promise<void> {
    await this.#sessions.close("The topic administration was closed");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #manage(topic: string, action: ManageTopicAction, options: TopicDeletion): Promise<unknown> {
    const { acceptLoss: acceptsLoss = false } = options;
    const clock = systemClock();
    const endMs = clock.now() + this.#waitOf(options);
    return this.#call(options, async (limit, stop) => {
      const zk = await this.#sessions.get(limit);
      // The request has the limit itself, because it knows whether it may have been executed.
      const limits = { clock, withinMs: Math.max(1, endMs - clock.now()), socket: this.#socket, signal: stop };
      return (await manageTopic(zk, this.#path, { topic, action, acceptsLoss }, limits)).value;
    });
  }

  async #call<T>(
    options: PubsubCallOptions,
    work: (limit: AbortSignal, stop: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const stop = this.#sessions.stopSignal(options.signal);
    using limit = callLimit(this.#waitOf(options), { signal: stop });
    return await work(limit.signal, stop);
  }

  #waitOf({ wait = this.#options.wait ?? waitMsDefault }: PubsubCallOptions): number {
    return wait;
  }
}

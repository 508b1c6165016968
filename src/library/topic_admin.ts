/** Operates topics of the publish/subscribe service: lists, inspects, repairs and deletes them. */
import { checkPubsubName } from "../pubsub/client/client_limits.ts";
import { type ManageTopicAction, requestTopicAction } from "../pubsub/admin/manage_topic.ts";
import { readServerOverview } from "../pubsub/admin/server_overview.ts";
import { PubsubPath } from "../pubsub/ownership/pubsub_path.ts";
import type { TopicDetails } from "../pubsub/store/operations/topic_details.ts";
import { readCurveSecretKey } from "../protocols/zeromq/curve_key_file.ts";
import { curveDialOptions } from "../protocols/zeromq/curve_security.ts";
import type { ZeroMqSocketOptions } from "../protocols/zeromq/socket_options.ts";
import { rejectOnAbort } from "../base/support/abort.ts";
import { checkOptions, type OptionForms, textForm, toggleForm, waitForm } from "./check_arguments.ts";
import { pubsubCallForms, type PubsubCallOptions } from "./pubsub_connection.ts";
import { type CallServers, findSession, type LibrarySession, serverForms, type ServerOptions } from "./session.ts";

export interface TopicAdminOptions extends ServerOptions {
  /** The file with the service's key pair, if the service has one. */
  readonly keyFile?: string;
  /** The time limit of a call in milliseconds; by default 30,000. */
  readonly wait?: number;
}

export interface TopicEntry {
  readonly topic: string;
  /** The ID of the server that owns the topic. */
  readonly server: string;
  /** False if the topic is not available, because its server is offline. */
  readonly isAvailable: boolean;
}

export interface TopicDeletion extends PubsubCallOptions {
  /** If true, the topic is deleted even if clients are subscribed. Their undelivered messages are lost. */
  readonly acceptLoss?: boolean;
}

const adminForms: OptionForms<TopicAdminOptions> = { ...serverForms, keyFile: textForm, wait: waitForm() };
const deletionForms: OptionForms<TopicDeletion> = { ...pubsubCallForms, acceptLoss: toggleForm };

/** The default time limit of a call, in milliseconds. */
const waitMsDefault = 30_000;

/**
 * Operates topics. Each call rejects with UNREACHABLE if no server responded within `wait`, or with REFUSED if the key
 * is wrong or an ACL forbids the call.
 */
export class TopicAdmin {
  readonly #waitMs: number;
  readonly #session: LibrarySession;
  readonly #socket: ZeroMqSocketOptions | undefined;

  /**
   * Checks the options. Opens nothing before the first call. Throws USAGE for an invalid option, or CONFIG for an
   * unusable key file.
   */
  constructor(options: TopicAdminOptions = {}) {
    checkOptions("TopicAdmin", options, adminForms);
    const { keyFile, wait = waitMsDefault } = options;
    this.#waitMs = wait;
    this.#session = findSession("TopicAdmin", options);
    const key = keyFile === undefined ? null : readCurveSecretKey(keyFile);
    this.#socket = key === null ? undefined : curveDialOptions(key, key.publicKey);
  }

  /** Lists the topics, sorted by name. */
  async list(options: PubsubCallOptions = {}): Promise<TopicEntry[]> {
    checkOptions("list", options, pubsubCallForms);
    return await this.#call("list topics", options, async ({ zk, root, waiting }) => {
      const servers = await rejectOnAbort(readServerOverview(zk, new PubsubPath(root)), waiting.signal);
      const entries = servers.flatMap(({ id: server, isAvailable, topics }) =>
        topics.map(({ topic }) => ({ topic, server, isAvailable }))
      );
      return entries.sort((a, b) => a.topic < b.topic ? -1 : 1);
    });
  }

  /** Returns what the topic holds, and its slowest subscribers. Rejects with NOT_FOUND if there is no such topic. */
  async show(topic: string, options: PubsubCallOptions = {}): Promise<TopicDetails> {
    checkOptions("show", options, pubsubCallForms);
    return await this.#manage(topic, "show", options) as TopicDetails;
  }

  /**
   * Deletes a topic with all its data. Rejects with USAGE while clients are subscribed (unless `acceptLoss` is true),
   * NOT_FOUND, or OUTCOME_UNKNOWN (the call may be repeated).
   */
  async delete(topic: string, options: TopicDeletion = {}): Promise<void> {
    checkOptions("delete", options, deletionForms);
    await this.#manage(topic, "delete", options);
  }

  /**
   * Gives up the damaged data of a topic, so that the other data is served again. Returns sentences that describe the
   * lost data. Rejects as `delete` does.
   */
  async repair(topic: string, options: PubsubCallOptions = {}): Promise<string[]> {
    checkOptions("repair", options, pubsubCallForms);
    return await this.#manage(topic, "repair", { ...options, acceptLoss: true }) as string[];
  }

  #manage(topic: string, action: ManageTopicAction, options: TopicDeletion): Promise<unknown> {
    checkPubsubName("topic", topic);
    const { acceptLoss: acceptsLoss = false, wait = this.#waitMs, signal: ownSignal } = options;
    return this.#call(`${action} topic "${topic}"`, options, async ({ zk, root, clock, waiting: { sinceMs } }) => {
      // The time limit is given to the request, because only the request knows whether it may have been executed.
      const withinMs = Math.max(1, sinceMs + wait - clock.now());
      const limits = { clock, withinMs, socket: this.#socket, signal: this.#session.stopSignal(ownSignal) };
      return (await requestTopicAction(zk, new PubsubPath(root), { topic, action, acceptsLoss }, limits)).value;
    });
  }

  #call<T>(
    what: string,
    { wait = this.#waitMs, signal }: PubsubCallOptions,
    work: (servers: CallServers) => Promise<T>,
  ): Promise<T> {
    return this.#session.call(what, { wait: Math.max(1, wait), signal }, work);
  }
}

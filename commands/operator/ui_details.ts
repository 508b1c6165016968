/** Answers the page's requests for details: pages of dead letters, a message body, the subscribers of a topic. */
import { HttpError } from "../../src/base/http/http_error.ts";
import { manageTopic } from "../../src/pubsub/admin/manage_topic.ts";
import { PubsubPath } from "../../src/pubsub/ownership/pubsub_path.ts";
import type { TopicDetails } from "../../src/pubsub/store/operations/topic_details.ts";
import { type Redaction, redactText } from "../../src/retry/dead_letters/redaction.ts";
import type { CommandStore, MessageFilter } from "../../src/retry/queue/store_methods.ts";
import type { Clock } from "../../src/base/support/clock.ts";
import type { DeadLetterPage, DeadLetterRow, TopicDetailRow } from "../../src/operator/ui/ui_rows.ts";
import type { ZeroMqSocketOptions } from "../../src/protocols/zeromq/socket_options.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { uiActionLettersMax } from "./ui_actions.ts";

export interface UiDetailsOptions {
  readonly zk: () => ZooKeeper | null;
  readonly root: string;
  readonly storeAt: (folder: string) => { readonly store: CommandStore } | null;
  readonly socket: () => ZeroMqSocketOptions | undefined;
  readonly redaction: Redaction;
  readonly showsBodies: boolean;
  readonly clock: Clock;
}

/** How many answers may be in progress at the same time. */
const runningMax = 8;
/** How long to wait for a server's answer, in milliseconds. */
const topicMsMax = 5000;
const bodyBytesMax = 64 << 10;

export class UiDetails {
  readonly #options: UiDetailsOptions;
  #running = 0;

  constructor(options: UiDetailsOptions) {
    this.#options = options;
  }

  /**
   * Answers a request, or returns null if the path is unknown. Rejects with an HttpError or an error of a store or
   * server.
   */
  answer(path: string, query: URLSearchParams, signal: AbortSignal): Promise<unknown> | null {
    const { showsBodies } = this.#options;
    if (path === "/dead") return this.#limited(() => this.#deadLetters(query));
    if (path === "/topic") return this.#limited(() => this.#topic(query, signal));
    return path === "/body" && showsBodies ? this.#limited(() => this.#body(query)) : null;
  }

  async #limited<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= runningMax) throw new HttpError(503, "Too many requests at the same time: try again\n");
    this.#running++;
    try {
      return await work();
    } finally {
      this.#running--;
    }
  }

  async #deadLetters(query: URLSearchParams): Promise<DeadLetterPage> {
    const store = this.#storeOf(query);
    const after = query.get("after") ?? "0";
    if (!/^\d{1,15}$/.test(after)) throw new HttpError(400, `"after" must be a number\n`);
    const filter: MessageFilter = {
      states: ["dead"],
      ...Object.fromEntries((["key", "reason", "error"] as const).flatMap((name) => {
        const value = query.get(name) ?? "";
        return value === "" ? [] : [[name, value]];
      })),
    };
    const found = await store.read("list", filter, { afterSeq: Number(after), max: uiActionLettersMax + 1 });
    const letters = found.slice(0, uiActionLettersMax).map((one): DeadLetterRow => {
      const { id, seq, key, reason, tries, firstMs, lastMs, error, bytes, forwardState } = one;
      const isForwarded = forwardState === "forwarded";
      const text = redactText(error, this.#options.redaction);
      return { id, seq, key, reason, tries, firstMs, lastMs, error: text, bytes, isForwarded };
    });
    return { letters, hasMore: found.length > uiActionLettersMax };
  }

  async #body(query: URLSearchParams): Promise<{ readonly text: string; readonly isCut: boolean }> {
    const message = await this.#storeOf(query).read("show", query.get("id") ?? "");
    if (message?.body === undefined) throw new HttpError(404, "The body is no longer stored\n");
    const { body } = message;
    return { text: new TextDecoder().decode(body.subarray(0, bodyBytesMax)), isCut: body.byteLength > bodyBytesMax };
  }

  async #topic(query: URLSearchParams, signal: AbortSignal): Promise<TopicDetailRow> {
    const { zk, root, clock, socket } = this.#options;
    const session = zk();
    if (session === null) throw new HttpError(503, "No coordination server responds\n");
    const topic = query.get("topic") ?? "";
    if (topic === "") throw new HttpError(400, `"topic" is missing\n`);
    const options = { clock, withinMs: topicMsMax, socket: socket(), signal };
    const { owner, value } = await manageTopic(session, new PubsubPath(root), { topic, action: "show" }, options);
    const { first, end, bytes, clients, subscribers, slowest, damage } = value as TopicDetails;
    const atMs = Date.now();
    return { topic, owner, atMs, first, end, bytes, clients, subscribers, slowest, damage };
  }

  #storeOf(query: URLSearchParams): CommandStore {
    const found = this.#options.storeAt(query.get("store") ?? "");
    if (found === null) throw new HttpError(404, "There is no such store\n");
    return found.store;
  }
}

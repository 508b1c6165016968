/**
 * Talks to publish/subscribe servers as a proxy does: looks where a topic is, asks there, tries again until it is
 * answered.
 */
import { DealerSocket } from "../../src/protocols/zeromq/dealer_socket.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import type { PubsubPath } from "../../src/pubsub/ownership/pubsub_path.ts";
import { AnnouncedServers } from "../../src/pubsub/ownership/announced_servers.ts";
import { TopicRouter } from "../../src/pubsub/ownership/topic_router.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { decodePubsubMessage } from "../../src/pubsub/wire/decode_message.ts";
import { encodePubsubMessage } from "../../src/pubsub/wire/encode_message.ts";
import type { PubsubHeaders, PubsubMessage, PubsubMessageOf } from "../../src/pubsub/wire/pubsub_messages.ts";
import { eventually } from "./eventually.ts";
import { messagesOf } from "./messages_of.ts";

export type Status = PubsubMessageOf<"STATUS">;
type ClientMessage = PubsubMessage & { readonly topic: string; readonly headers?: PubsubHeaders };

const nothing = new Uint8Array(0);
const decoder = new TextDecoder();

export class PubsubTalker implements AsyncDisposable {
  readonly router: TopicRouter;
  /** How long one attempt waits for its answer, in milliseconds. */
  attemptMs = 1500;
  readonly #list: AnnouncedServers;
  readonly #dealers = new Map<string, DealerSocket>();
  readonly #waiting = new Map<number, (status: Status) => void>();
  #next = 1;

  static async start(zk: ZooKeeper, path: PubsubPath): Promise<PubsubTalker> {
    return new PubsubTalker(zk, path, await AnnouncedServers.read(zk, path.servers, systemClock()));
  }

  private constructor(zk: ZooKeeper, path: PubsubPath, list: AnnouncedServers) {
    this.#list = list;
    this.router = new TopicRouter(zk, path, list);
  }

  /** One attempt at one server. Rejects when no answer comes. */
  send(endpoint: string, frames: readonly Uint8Array[], withinMs = this.attemptMs): Promise<Status> {
    const number = this.#next++;
    const correlation = new TextEncoder().encode(String(number));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(number);
        reject(new Error(`${endpoint} has not answered within ${withinMs} ms`));
      }, withinMs);
      this.#waiting.set(number, (status) => {
        clearTimeout(timer);
        resolve(status);
      });
      this.#dealer(endpoint).trySend([correlation, nothing, ...frames]);
    });
  }

  say(endpoint: string, message: PubsubMessage, withinMs?: number): Promise<Status> {
    return this.send(endpoint, encodePubsubMessage(message), withinMs);
  }

  /** Where the topic is now. */
  async endpoint(topic: string): Promise<{ endpoint: string; id: string; epoch: number }> {
    return await eventually(async () => {
      const route = await this.router.findRoute(topic);
      return route.kind === "server" && route;
    }, { what: `topic ${topic} to be somewhere`, withinMs: 20_000 });
  }

  /**
   * Until there is an answer that ends it: anything but NOT_OWNER, OVERLOADED, ERROR, silence, and FULL but for a put.
   */
  async ask(message: ClientMessage, withinMs = 30_000): Promise<Status> {
    return await eventually(async () => {
      const { endpoint, id, epoch } = await this.endpoint(message.topic);
      const headers = { version: 1, ...message.headers, epoch };
      const status = await this.say(endpoint, { ...message, headers }, this.attemptMs + (message.headers?.waitMs ?? 0));
      if (status.status === "NOT_OWNER") {
        const { owner, epoch: at } = status.headers ?? {};
        const hint = owner === undefined ? null : { owner, epoch: at ?? 0 };
        this.router.correctRoute(message.topic, { owner: id, epoch }, hint);
      }
      // A put that was refused stays refused, as long as it has the same counter.
      const isPassing = status.status === "FULL" && message.name !== "PUT";
      if (isPassing || ["NOT_OWNER", "OVERLOADED", "ERROR"].includes(status.status)) {
        throw new Error(`${status.status} ${decoder.decode(status.body ?? nothing)}`);
      }
      return status;
    }, { what: `${message.name} ${message.topic} to be answered`, withinMs, everyMs: 10 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#list[Symbol.dispose]();
    await Promise.all([...this.#dealers.values()].map((dealer) => dealer.close({ lingerMs: 0 })));
  }

  #dealer(endpoint: string): DealerSocket {
    let dealer = this.#dealers.get(endpoint);
    if (dealer === undefined) {
      this.#forgetOthers(endpoint);
      dealer = new DealerSocket({ reconnect: { minMs: 20, maxMs: 200 } });
      dealer.connect(endpoint);
      this.#dealers.set(endpoint, dealer);
      void this.#read(dealer);
    }
    return dealer;
  }

  /** Servers that are gone: their ports may be anybody's. */
  #forgetOthers(endpoint: string): void {
    const there = new Set([endpoint, ...[...this.#list.servers.values()].map((server) => server.endpoint)]);
    for (const [other, dealer] of this.#dealers) {
      if (there.has(other)) continue;
      this.#dealers.delete(other);
      void dealer.close({ lingerMs: 0 });
    }
  }

  async #read(dealer: DealerSocket): Promise<void> {
    for await (const [correlation = nothing, , ...frames] of messagesOf(dealer)) {
      const number = Number(decoder.decode(correlation));
      const message = decodePubsubMessage(frames);
      if (message.name !== "STATUS") throw new Error(`an answer makes no sense: ${JSON.stringify(message)}`);
      this.#waiting.get(number)?.(message as Status);
      this.#waiting.delete(number);
    }
  }
}

export const textOf = (body: Uint8Array | undefined): string => decoder.decode(body ?? nothing);
export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

/** A publish/subscribe server that does what a test says: answers, answers something else, or says nothing. */
import { RouterSocket } from "../../src/protocols/zeromq/router_socket.ts";
import { decodePubsubMessage, type InvalidPubsubMessage } from "../../src/pubsub/wire/decode_message.ts";
import { encodePubsubMessage } from "../../src/pubsub/wire/encode_message.ts";
import { pubsubSocketLimits } from "../../src/pubsub/wire/message_limits.ts";
import type { PubsubMessage, PubsubMessageOf } from "../../src/pubsub/wire/pubsub_messages.ts";
import { messagesOf } from "./messages_of.ts";

export type FakeAnswer = Partial<Omit<PubsubMessageOf<"STATUS">, "name" | "sender">> & {
  readonly status: "OK" | string;
};
/** Null: silence. */
export type Behaviour = (message: PubsubMessage) => FakeAnswer | null | Promise<FakeAnswer | null>;

export class FakePubsubServer implements AsyncDisposable {
  readonly id: string;
  endpoint = "";
  behaviour: Behaviour = () => ({ status: "OK" });
  /** Everything that came, in order. */
  readonly received: (PubsubMessage | InvalidPubsubMessage)[] = [];
  #router: RouterSocket | null = null;

  static async start(id: string): Promise<FakePubsubServer> {
    const server = new FakePubsubServer(id);
    await server.open("tcp://127.0.0.1:0");
    return server;
  }

  private constructor(id: string) {
    this.id = id;
  }

  /** Listens, at the same endpoint when it did before. */
  async open(endpoint = this.endpoint): Promise<void> {
    const router = this.#router = new RouterSocket({ limits: pubsubSocketLimits });
    this.endpoint = await router.bind(endpoint);
    void this.#read(router);
  }

  /** All connections are cut, and nobody listens. */
  async close(): Promise<void> {
    await this.#router?.close({ lingerMs: 0 });
    this.#router = null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #read(router: RouterSocket): Promise<void> {
    for await (const frames of messagesOf(router)) void this.#take(router, frames);
  }

  async #take(router: RouterSocket, frames: readonly Uint8Array[]): Promise<void> {
    const end = frames.findIndex((frame, at) => at > 0 && frame.byteLength === 0) + 1;
    const message = decodePubsubMessage(frames.slice(end));
    this.received.push(message);
    const answer = message.name === null ? { status: "BAD_REQUEST" } : await this.behaviour(message);
    if (answer === null || router !== this.#router) return;
    const status = { name: "STATUS", sender: this.id, ...answer } as PubsubMessageOf<"STATUS">;
    router.trySend([...frames.slice(0, end), ...encodePubsubMessage(status)]);
  }
}

/** A proxy between clients and servers that do what a test says, on real sockets; `end` closes all of it. */
import { PubsubProxy, type PubsubProxyOptions } from "../../src/pubsub/proxy/pubsub_proxy.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import type { PubsubMessage } from "../../src/pubsub/wire/pubsub_messages.ts";
import { FakeDirectory } from "./fake_directory.ts";
import { FakePubsubServer } from "./fake_pubsub_server.ts";
import { ProxyClient } from "./proxy_client.ts";

export class ProxyRig {
  readonly #ends: AsyncDisposable[] = [];

  /** Closed at the end, those that came last first. */
  keep<T extends AsyncDisposable>(one: T): T {
    this.#ends.push(one);
    return one;
  }

  async server(id: string): Promise<FakePubsubServer> {
    return this.keep(await FakePubsubServer.start(id));
  }

  async start(options: Partial<PubsubProxyOptions> = {}): Promise<{
    readonly proxy: PubsubProxy;
    readonly directory: FakeDirectory;
    readonly endpoint: string;
    readonly client: () => ProxyClient;
  }> {
    const directory = new FakeDirectory();
    const proxy = this.keep(
      new PubsubProxy({ id: "p1", directory, clock: systemClock(), requestTimeoutMs: 1000, ...options }),
    );
    const endpoint = await proxy.listen("tcp://127.0.0.1:0");
    return { proxy, directory, endpoint, client: () => this.keep(new ProxyClient(endpoint)) };
  }

  async end(): Promise<void> {
    for (const one of this.#ends.splice(0).reverse()) await one[Symbol.asyncDispose]();
  }
}

export const put = (topic: string, counter: number, headers?: PubsubMessage["headers"]) =>
  ({ name: "PUT", sender: "bob", topic, counter, body: new TextEncoder().encode(`m${counter}`), headers }) as const;
export const get = (topic: string, last = -1, headers: PubsubMessage["headers"] = undefined) =>
  ({ name: "GET", sender: "alice", topic, last, headers }) as const;

/** One client of the znode workload: a session over a network of its own, and its calls. */
import { Way } from "../ensemble/way.ts";
import type { ServerNode } from "../../../support/backends.ts";
import { monotonicMs } from "../../../pubsub/fault/pubsub/monotonic.ts";
import { ZnodeCaller, type ZnodeCallerOptions } from "./znode_caller.ts";

export interface ZnodeClientOptions extends Omit<ZnodeCallerOptions, "nowMs"> {
  readonly sessionTimeoutMs: number;
}

export class ZnodeClient implements AsyncDisposable {
  readonly calls: ZnodeCaller;
  readonly #nodes: readonly ServerNode[];
  readonly #sessionTimeoutMs: number;
  #way: Way | null = null;

  constructor(nodes: readonly ServerNode[], options: ZnodeClientOptions) {
    this.#nodes = nodes;
    this.#sessionTimeoutMs = options.sessionTimeoutMs;
    this.calls = new ZnodeCaller({ ...options, nowMs: monotonicMs });
  }

  /** Makes calls, one after the other, until `isOver`. A session that has ended is followed by another one. */
  async work(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      if (this.#way === null || this.#way.zk.session.ended.aborted) await this.#open();
      else await this.calls.call(this.#way.zk);
    }
  }

  /** Ends all connections; the session goes on. */
  cut(): void {
    this.#way?.proxies.forEach((proxy) => proxy.cut());
  }

  /** Lets the next response be lost, and ends the connection. */
  loseResponse(): void {
    for (const proxy of this.#way?.proxies ?? []) void proxy.onFrame({ direction: "replies", nth: 0, action: "drop" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#way?.[Symbol.asyncDispose]();
  }

  async #open(): Promise<void> {
    await this.#way?.[Symbol.asyncDispose]();
    this.#way = null;
    this.#way = await Way.open(this.#nodes, this.#sessionTimeoutMs).catch(() => null);
  }
}

/** A session, and its own ways to the servers: each can be cut or torn without anybody else noticing. */
import { connectToZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../../src/protocols/zookeeper/hosts.ts";
import type { ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import type { Connection } from "../../../../src/base/sockets/connection.ts";
import { dial } from "../../../../src/base/sockets/dial.ts";
import type { ServerNode } from "../../../support/backends.ts";
import { ChaosProxy } from "../../../support/chaos_proxy.ts";
import { FrameObserver } from "../../../support/frame_observer.ts";

/** The requests that set watches again, as they went out. */
export interface Rearmed {
  batches: number;
  /** The longest of them, in bytes. */
  bytesMax: number;
}

/** The connection, with a look at what is written to it. */
function observed(connection: Connection, rearmed: Rearmed): Connection {
  const observer = new FrameObserver();
  return {
    get bufferedBytes() {
      return connection.bufferedBytes;
    },
    peer: connection.peer,
    write(bytes) {
      for (const { info } of observer.requests(bytes)) {
        if (info?.operation !== "setWatches") continue;
        rearmed.batches++;
        rearmed.bytesMax = Math.max(rearmed.bytesMax, info.body.byteLength);
      }
      connection.write(bytes);
    },
    pause: () => connection.pause(),
    resume: () => connection.resume(),
    end: () => connection.end(),
    destroy: () => connection.destroy(),
  };
}

export class Way implements AsyncDisposable {
  readonly zk: ZooKeeper;
  readonly proxies: readonly ChaosProxy[];
  readonly rearmed: Rearmed;

  static async open(nodes: readonly ServerNode[], sessionTimeoutMs: number): Promise<Way> {
    const proxies = await Promise.all(nodes.map(({ address }) => ChaosProxy.start(address)));
    const rearmed = { batches: 0, bytesMax: 0 };
    try {
      const zk = await connectToZooKeeper({
        servers: parseZooKeeperServers(proxies.map(({ servers }) => servers).join(",")),
        sessionTimeoutMs,
        connectTimeoutMs: 20_000,
        dial: async (address, handlers, options) => observed(await dial(address, handlers, options), rearmed),
      });
      return new Way(zk, { proxies, rearmed });
    } catch (error) {
      await Promise.all(proxies.map((proxy) => proxy.close()));
      throw error;
    }
  }

  private constructor(zk: ZooKeeper, { proxies, rearmed }: Pick<Way, "proxies" | "rearmed">) {
    this.zk = zk;
    this.proxies = proxies;
    this.rearmed = rearmed;
  }

  /** Where the session is, counted from 0; the first of two that it may be at. -1 between two servers. */
  get at(): number {
    return this.proxies.findIndex(({ connections }) => connections > 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.zk.close();
    await Promise.all(this.proxies.map((proxy) => proxy.close()));
  }
}

/** Watches the topics' nodes and writes each version that it sees into the history. Owns a session of its own. */
import { connectToZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../../src/protocols/zookeeper/hosts.ts";
import { nullIfNoNode } from "../../../../src/coordination/nodes/node_requests.ts";
import type { PubsubPath } from "../../../../src/pubsub/ownership/pubsub_path.ts";
import { parseTopicNode } from "../../../../src/pubsub/ownership/topic_nodes.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import type { HistoryWriter } from "./history_file.ts";

/** What it needs of a session. */
export interface WatchedTree extends AsyncDisposable {
  getData(path: string): Promise<{ readonly data: Uint8Array; readonly stat: { readonly version: number } }>;
}

const everyMs = 50;
const againMs = 500;

export class NodeWatch implements AsyncDisposable {
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;
  readonly #versions = new Map<string, number>();
  /** What the last look showed: who has each topic. */
  readonly owners = new Map<string, string>();

  static on(servers: string, what: ConstructorParameters<typeof NodeWatch>[1]): NodeWatch {
    const where = { servers: parseZooKeeperServers(servers), sessionTimeoutMs: 10_000 };
    return new NodeWatch((signal) => connectToZooKeeper({ ...where, signal }), what);
  }

  /** `open`: begins a session. */
  constructor(open: (signal: AbortSignal) => Promise<WatchedTree>, { path, topics, writer }: {
    readonly path: PubsubPath;
    readonly topics: readonly string[];
    readonly writer: HistoryWriter;
  }) {
    this.#ended = this.#run(open, path, { topics, writer });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Error("closed"));
    await this.#ended;
  }

  /** As long as it is wanted: a session that ends is followed by another. */
  async #run(
    open: (signal: AbortSignal) => Promise<WatchedTree>,
    path: PubsubPath,
    what: { readonly topics: readonly string[]; readonly writer: HistoryWriter },
  ): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        await using zk = await open(signal);
        for (;;) {
          await this.#look(zk, path, what);
          await sleep(systemClock(), everyMs, signal);
        }
      } catch {
        if (!signal.aborted) await sleep(systemClock(), againMs, signal).catch(() => {});
      }
    }
  }

  async #look(
    zk: WatchedTree,
    path: PubsubPath,
    { topics, writer }: { readonly topics: readonly string[]; readonly writer: HistoryWriter },
  ): Promise<void> {
    await Promise.all(topics.map(async (topic) => {
      const place = path.topic(topic);
      const found = await nullIfNoNode(zk.getData(place));
      // Another session's server may be behind.
      if (found === null || found.stat.version <= (this.#versions.get(topic) ?? -1)) return;
      const { owner, epoch, state, incarnation } = parseTopicNode(found.data, place, topic);
      this.#versions.set(topic, found.stat.version);
      this.owners.set(topic, owner);
      writer.node({ topic, owner, epoch, state, incarnation, version: found.stat.version });
    }));
  }
}

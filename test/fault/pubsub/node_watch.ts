/** Watches the topics' nodes and writes each version that it sees into the history. Owns a session of its own. */
import { connect } from "../../../src/clients/zookeeper/client.ts";
import { parseServers } from "../../../src/clients/zookeeper/hosts.ts";
import type { ZooKeeper } from "../../../src/clients/zookeeper/zookeeper.ts";
import type { PubsubPath } from "../../../src/recipes/pubsub/ownership/pubsub_path.ts";
import { parseTopicNode } from "../../../src/recipes/pubsub/ownership/topic_node_data.ts";
import { systemClock } from "../../../src/support/clock.ts";
import { sleep } from "../../../src/support/deadline.ts";
import type { HistoryWriter } from "./history_file.ts";

const everyMs = 50;
const againMs = 500;

export class NodeWatch implements AsyncDisposable {
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;
  readonly #versions = new Map<string, number>();
  /** What the last look showed: who has each topic. */
  readonly owners = new Map<string, string>();

  /** `servers`: as for --servers. */
  constructor(servers: string, { path, topics, writer }: {
    readonly path: PubsubPath;
    readonly topics: readonly string[];
    readonly writer: HistoryWriter;
  }) {
    this.#ended = this.#run(servers, path, { topics, writer });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Error("closed"));
    await this.#ended;
  }

  /** As long as it is wanted: a session that ends is followed by another. */
  async #run(
    servers: string,
    path: PubsubPath,
    what: { readonly topics: readonly string[]; readonly writer: HistoryWriter },
  ): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        await using zk = await connect({ servers: parseServers(servers), sessionTimeoutMs: 10_000, signal });
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
    zk: ZooKeeper,
    path: PubsubPath,
    { topics, writer }: { readonly topics: readonly string[]; readonly writer: HistoryWriter },
  ): Promise<void> {
    await Promise.all(topics.map(async (topic) => {
      const place = path.topic(topic);
      const found = await zk.getData(place).catch(() => null);
      if (found === null || this.#versions.get(topic) === found.stat.version) return;
      const { owner, epoch, state, birth } = parseTopicNode(found.data, place, topic);
      this.#versions.set(topic, found.stat.version);
      this.owners.set(topic, owner);
      writer.node({ topic, owner, epoch, state, birth, version: found.stat.version });
    }));
  }
}

/** Reads and writes topics' nodes. A write reports its outcome and never overwrites a version that was not read. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { isRefusal, isTransient, nullIfNoNode } from "../../coordination/request_errors.ts";
import type { PubsubPath } from "./pubsub_path.ts";
import type { TopicNode } from "./topic_node.ts";
import { formatTopicNode, parseTopicNode } from "./topic_node_data.ts";

export interface ReadTopicNode {
  readonly node: TopicNode;
  /** Version for the next compare-and-set. */
  readonly version: number;
}

/** Unknown: the response was lost, and the write may have been done. */
export type WriteOutcome = "written" | "refused" | "unknown";

const nothing = new Uint8Array();

export class TopicNodes {
  readonly #zk: ZooKeeper;
  readonly #path: PubsubPath;

  constructor(zk: ZooKeeper, path: PubsubPath) {
    this.#zk = zk;
    this.#path = path;
  }

  /** Returns null if no server was ever assigned the topic. */
  async read(topic: string): Promise<ReadTopicNode | null> {
    const path = this.#path.topic(topic);
    const found = await nullIfNoNode(this.#zk.getData(path));
    if (found === null) return null;
    const { topic: _, ...node } = parseTopicNode(found.data, path, topic);
    return { node, version: found.stat.version };
  }

  /** The next read returns a state that is not older than any write before this call. */
  async sync(topic: string): Promise<void> {
    await this.#zk.sync(this.#path.topic(topic));
  }

  /** Refused if the node exists. */
  async create(topic: string, node: TopicNode): Promise<WriteOutcome> {
    const path = this.#path.topic(topic);
    const data = formatTopicNode(topic, node);
    return await outcomeOf(async () => {
      try {
        await this.#zk.create(path, data);
      } catch (thrown) {
        if (!isRefusal(thrown, "NONODE")) throw thrown;
        await makeParents(this.#zk, path);
        await this.#zk.create(path, data);
      }
    });
  }

  /** Refused if the node has changed since it was read. */
  async write(topic: string, node: TopicNode, version: number): Promise<WriteOutcome> {
    return await outcomeOf(() => this.#zk.setData(this.#path.topic(topic), formatTopicNode(topic, node), version));
  }

  /** Counts the topic for its owner. The count is only used for assignments, so failures are ignored. */
  async count(topic: string, owner: string): Promise<void> {
    const path = this.#path.owned(owner, topic);
    await outcomeOf(async () => {
      try {
        await this.#zk.create(path, nothing);
      } catch (thrown) {
        if (!isRefusal(thrown, "NONODE")) throw thrown;
        await makeParents(this.#zk, path);
        await this.#zk.create(path, nothing);
      }
    });
  }

  /** Counts the topic for its owner; costs no write if it is counted already, as it nearly always is. */
  async keepCounted(topic: string, owner: string): Promise<void> {
    if (await this.#zk.exists(this.#path.owned(owner, topic)) === null) await this.count(topic, owner);
  }

  async uncount(topic: string, owner: string): Promise<void> {
    await outcomeOf(() => this.#zk.delete(this.#path.owned(owner, topic), -1));
  }
}

async function outcomeOf(write: () => Promise<unknown>): Promise<WriteOutcome> {
  try {
    await write();
    return "written";
  } catch (thrown) {
    if (isRefusal(thrown, "NODEEXISTS", "BADVERSION", "NONODE")) return "refused";
    if (isTransient(thrown)) return "unknown";
    throw thrown;
  }
}

/** Creates the missing parent nodes of `path`, from the lowest up to the first that exists. */
export async function makeParents(zk: ZooKeeper, path: string): Promise<void> {
  const parent = path.slice(0, path.lastIndexOf("/"));
  if (parent === "") return;
  try {
    await orExists(zk.create(parent, nothing));
  } catch (thrown) {
    if (!isRefusal(thrown, "NONODE")) throw thrown;
    await makeParents(zk, parent);
    await orExists(zk.create(parent, nothing));
  }
}

async function orExists(creating: Promise<unknown>): Promise<void> {
  try {
    await creating;
  } catch (thrown) {
    if (!isRefusal(thrown, "NODEEXISTS")) throw thrown;
  }
}

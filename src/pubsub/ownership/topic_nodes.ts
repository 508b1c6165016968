/** Reads and writes topics' nodes. A write says what became of it, and never writes over what was not read. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { isRefusal, isTransient, nullIfNoNode } from "../../coordination/request_errors.ts";
import type { PubsubPath } from "./pubsub_path.ts";
import type { TopicNode } from "./topic_node.ts";
import { formatTopicNode, parseTopicNode } from "./topic_node_data.ts";

export interface ReadTopicNode {
  readonly node: TopicNode;
  /** Guards whatever follows from it. */
  readonly version: number;
}

/** Unknown: the answer was lost, and it may have been done. */
export type WriteOutcome = "written" | "refused" | "unknown";

const nothing = new Uint8Array();

export class TopicNodes {
  readonly #zk: ZooKeeper;
  readonly #path: PubsubPath;

  constructor(zk: ZooKeeper, path: PubsubPath) {
    this.#zk = zk;
    this.#path = path;
  }

  /** Null when nobody was ever given the topic. */
  async read(topic: string): Promise<ReadTopicNode | null> {
    const path = this.#path.topic(topic);
    const found = await nullIfNoNode(this.#zk.getData(path));
    if (found === null) return null;
    const { topic: _, ...node } = parseTopicNode(found.data, path, topic);
    return { node, version: found.stat.version };
  }

  /** What is read next is not older than what anybody has written before. */
  async sync(topic: string): Promise<void> {
    await this.#zk.sync(this.#path.topic(topic));
  }

  /** Refused when the node is there. */
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

  /** Refused when the node is not what was read. */
  async write(topic: string, node: TopicNode, version: number): Promise<WriteOutcome> {
    return await outcomeOf(() => this.#zk.setData(this.#path.topic(topic), formatTopicNode(topic, node), version));
  }

  /** Counts the topic for its owner. Only assignments go by it, so that a failure is none. */
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

  /** For an owner, whose topic nearly always is counted: then it costs no write. */
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

/** Makes the ordinary nodes above `path`, those that are missing: from the lowest up to the first that is there. */
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

/**
 * Reads and writes the nodes of topics, which contain JSON. A write reports its outcome, and overwrites only the
 * version that was read. A read rejects if the node has an unknown format.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../base/errors.ts";
import { demandJsonFields, encodeJson } from "../../base/support/json_fields.ts";
import {
  isServerRefusal,
  isTransientFailure,
  nullIfNoNode,
  settleEarlierWrites,
} from "../../coordination/nodes/node_requests.ts";
import type { PubsubPath } from "./pubsub_path.ts";
import type { TopicContentSource, TopicNode, TopicNodeState } from "./topic_node.ts";

export interface VersionedTopicNode {
  readonly node: TopicNode;
  /** The node's version, for the next compare-and-set. */
  readonly version: number;
}

/**
 * The outcome of a write to a node. `unknown` means that the response was lost, and the write may have been executed.
 */
export type NodeWriteOutcome = "written" | "refused" | "unknown";

const nothing = new Uint8Array();

/** The number of the format. A new format gets a new number: an old baton then never acts on a newer node. */
const layout = 1;
const states: readonly string[] = ["new", "moving", "stored", "sealed"] satisfies TopicNodeState[];
/**
 * Encodes a topic's node. The data contains the topic's name, because the path of a long name contains only its hash.
 */
export function formatTopicNode(topic: string, node: TopicNode): Uint8Array {
  const { baseOffset, ...others } = node;
  return encodeJson({ layout, topic, ...others, base_offset: baseOffset });
}

/** Decodes a topic's node. Throws CONFIG for data in another format, or for a topic other than `topic`. */
export function parseTopicNode(data: Uint8Array, path: string, topic?: string): TopicNode & { readonly topic: string } {
  const refuse = (what: string, cause?: unknown) =>
    new BatonError("CONFIG", `"${path}" cannot be read as a topic node: ${what}`, { cause });
  const row = demandJsonFields(data, refuse, layout);
  const { topic: name, owner, state, incarnation } = row;
  if (
    typeof name !== "string" || typeof owner !== "string" || typeof incarnation !== "string" ||
    !states.includes(`${state}`)
  ) {
    throw refuse("topic, owner, state or incarnation is missing or invalid");
  }
  if (topic !== undefined && name !== topic) throw refuse(`it describes "${name}", not "${topic}"`);
  const { epoch, base_offset: baseOffset } = row;
  if (!isNonNegativeInteger(epoch) || epoch < 1 || !isNonNegativeInteger(baseOffset)) {
    throw refuse("epoch or base_offset is missing or invalid");
  }
  const source = (row["source"] ?? null) as TopicContentSource | null;
  if (source !== null) {
    const hasStore = source.store === undefined || typeof source.store === "string";
    if (typeof source.owner !== "string" || !isNonNegativeInteger(source.epoch) || !hasStore) {
      throw refuse("its source is invalid");
    }
  }
  const { store } = row;
  if (store !== undefined && typeof store !== "string") throw refuse("its store is invalid");
  const node = { topic: name, owner, epoch, state: state as TopicNodeState, incarnation, baseOffset, source };
  return store === undefined ? node : { ...node, store };
}

function isNonNegativeInteger(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

export class TopicNodes {
  readonly #zk: ZooKeeper;
  readonly #path: PubsubPath;

  constructor(zk: ZooKeeper, path: PubsubPath) {
    this.#zk = zk;
    this.#path = path;
  }

  /** Returns the node of a topic; null if the topic was never assigned to a server. */
  async read(topic: string): Promise<VersionedTopicNode | null> {
    const path = this.#path.topic(topic);
    const found = await nullIfNoNode(this.#zk.getData(path));
    if (found === null) return null;
    const { topic: _, ...node } = parseTopicNode(found.data, path, topic);
    return { node, version: found.stat.version };
  }

  /**
   * Makes the next read as new as the leader of the coordination service. A leader that was replaced may still answer.
   */
  async sync(topic: string): Promise<void> {
    await this.#zk.sync(this.#path.topic(topic));
  }

  /** Called after a write with an unknown outcome: if the write is ever executed, the next read then shows it. */
  async settle(topic: string): Promise<void> {
    await settleEarlierWrites(this.#zk, this.#path.topic(topic));
  }

  /** Creates the node of a topic. The outcome is `refused` if the node exists. */
  async create(topic: string, node: TopicNode): Promise<NodeWriteOutcome> {
    const path = this.#path.topic(topic);
    const data = formatTopicNode(topic, node);
    return await attemptNodeWrite(() => createNodeWithParents(this.#zk, path, data));
  }

  /** Writes the node of a topic. The outcome is `refused` if the node has changed since `version` was read. */
  async write(topic: string, node: TopicNode, version: number): Promise<NodeWriteOutcome> {
    return await attemptNodeWrite(() =>
      this.#zk.setData(this.#path.topic(topic), formatTopicNode(topic, node), version)
    );
  }

  /** Counts the topic for its owner. Ignores refusals and lost responses, because only assignments use the count. */
  async countForOwner(topic: string, owner: string): Promise<void> {
    await attemptNodeWrite(() => createNodeWithParents(this.#zk, this.#path.ownedTopic(owner, topic), nothing));
  }

  /** Counts the topic for its owner. Writes nothing if the topic is already counted, which is the usual case. */
  async ensureCountedForOwner(topic: string, owner: string): Promise<void> {
    if (await this.#zk.exists(this.#path.ownedTopic(owner, topic)) === null) await this.countForOwner(topic, owner);
  }

  async uncountForOwner(topic: string, owner: string): Promise<void> {
    await attemptNodeWrite(() => this.#zk.delete(this.#path.ownedTopic(owner, topic), -1));
  }
}

/** Runs a write to a node and returns its outcome. Rejects with all errors except a refusal and a lost response. */
export async function attemptNodeWrite(write: () => Promise<unknown>): Promise<NodeWriteOutcome> {
  try {
    await write();
    return "written";
  } catch (thrown) {
    if (isServerRefusal(thrown, "NODEEXISTS", "BADVERSION", "NONODE")) return "refused";
    if (isTransientFailure(thrown)) return "unknown";
    throw thrown;
  }
}

export async function createNodeWithParents(
  zk: ZooKeeper,
  path: string,
  data: Uint8Array,
  options: Parameters<ZooKeeper["create"]>[2] = {},
): Promise<void> {
  for (;;) {
    try {
      await zk.create(path, data, options);
      return;
    } catch (thrown) {
      if (!isServerRefusal(thrown, "NONODE")) throw thrown;
      await makeParentNodes(zk, path);
    }
  }
}

export async function makeParentNodes(zk: ZooKeeper, path: string): Promise<void> {
  const parent = path.slice(0, path.lastIndexOf("/"));
  if (parent === "") return;
  try {
    await createNodeWithParents(zk, parent, nothing);
  } catch (thrown) {
    if (!isServerRefusal(thrown, "NODEEXISTS")) throw thrown;
  }
}

export interface ListedTopic extends VersionedTopicNode {
  readonly topic: string;
}

const batchSize = 100;

/**
 * Yields all topics while it reads them. The list is not a snapshot: topics that are created during the read may be
 * missing. Throws CONFIG for a node in an unknown format.
 */
export async function* readTopicList(zk: ZooKeeper, path: PubsubPath): AsyncGenerator<ListedTopic, void, void> {
  const shards = path.shards();
  for (let at = 0; at < shards.length; at += batchSize) {
    const batch = shards.slice(at, at + batchSize);
    const lists = await Promise.all(batch.map((shard) => nullIfNoNode(zk.getChildren(shard))));
    for (const [index, list] of lists.entries()) {
      yield* listShard(zk, batch[index] as string, list?.children ?? []);
    }
  }
}

async function* listShard(
  zk: ZooKeeper,
  shard: string,
  names: readonly string[],
): AsyncGenerator<ListedTopic, void, void> {
  for (let at = 0; at < names.length; at += batchSize) {
    const paths = names.slice(at, at + batchSize).map((name) => `${shard}/${name}`);
    const found = await Promise.all(paths.map((path) => nullIfNoNode(zk.getData(path))));
    for (const [index, one] of found.entries()) {
      if (one === null) continue;
      const { topic, ...node } = parseTopicNode(one.data, paths[index] as string);
      yield { topic, node, version: one.stat.version };
    }
  }
}

/**
 * Finds, for a proxy, the server that handles a topic's requests. Cached routes may be old: a server that does not own
 * the topic responds with NOT_OWNER. The topics therefore need no watches, and the cache may lose entries without harm.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { sha256Hex } from "../../base/support/digest.ts";
import { newGuid } from "../../base/support/guid.ts";
import type { PubsubPath } from "./pubsub_path.ts";
import type { AnnouncedServers } from "./announced_servers.ts";
import { type TopicNode, topicNodeAfterAssignment, topicNodeAfterReassignment } from "./topic_node.ts";
import { TopicNodes, type VersionedTopicNode } from "./topic_nodes.ts";

/** How many routes a proxy caches, at about 200 bytes each. */
export const cachedRoutesMax = 100_000;
/** How many times a proxy tries to assign a topic while other proxies are faster. */
const triesMax = 20;

export type TopicRoute =
  | { readonly kind: "server"; readonly id: string; readonly endpoint: string; readonly epoch: number }
  /** The owner has the only copy and is not running. The request must wait for it. */
  | { readonly kind: "unavailable"; readonly owner: string }
  /** The topic is new, but no server is running, or all servers are draining. */
  | { readonly kind: "no servers" }
  /**
   * The topic has no node, because the tree was lost. One of the awaited servers may store the topic, but these servers
   * have not announced themselves again.
   */
  | { readonly kind: "unknown owner"; readonly awaited: readonly string[] }
  /** The topic does not exist. Returned only if `creates` is false. */
  | { readonly kind: "no topic" };

export interface FindRouteOptions {
  /** If true (the default), assigns a topic without an owner to a server. */
  readonly creates?: boolean;
}

/** The owner of a topic at an epoch, according to a node or a server. */
export interface TopicOwner {
  readonly owner: string;
  readonly epoch: number;
}

export class TopicRouter {
  readonly #zk: ZooKeeper;
  readonly #path: PubsubPath;
  readonly #list: AnnouncedServers;
  readonly #nodes: TopicNodes;
  readonly #awaitedServers: () => readonly string[];
  readonly #routes = new Map<string, TopicOwner>();
  readonly #lookups = new Map<string, Promise<TopicRoute>>();
  /** Lookups with `creates` false. */
  readonly #searches = new Map<string, Promise<TopicRoute>>();
  /** The number of assignments in progress, by server. The coordination service does not count them yet. */
  readonly #assigning = new Map<string, number>();

  /** `awaited` returns the servers that may have topics whose node is missing in the tree. */
  constructor(zk: ZooKeeper, path: PubsubPath, list: AnnouncedServers, awaited: () => readonly string[] = () => []) {
    this.#awaitedServers = awaited;
    this.#zk = zk;
    this.#path = path;
    this.#list = list;
    this.#nodes = new TopicNodes(zk, path);
  }

  /**
   * Returns the cached route of a topic if its server is running; otherwise null. Almost every request uses a cached
   * route.
   */
  cachedRoute(topic: string): TopicRoute | null {
    const known = this.#routes.get(topic);
    return known === undefined ? null : this.#routeToOwner(known);
  }

  /**
   * Finds the route of a topic. Reads the topic's node if needed, and assigns a new topic to a server. Rejects with the
   * session's errors.
   */
  async findRoute(topic: string, { creates = true }: FindRouteOptions = {}): Promise<TopicRoute> {
    const now = this.cachedRoute(topic);
    if (now !== null) return now;
    const lookups = creates ? this.#lookups : this.#searches;
    let lookup = lookups.get(topic);
    if (lookup === undefined) {
      lookup = (creates ? this.#findOrAssign(topic) : this.#searchRoute(topic)).finally(() => lookups.delete(topic));
      lookups.set(topic, lookup);
    }
    return await lookup;
  }

  /**
   * Corrects the cached route after the server `asked` has responded with NOT_OWNER. `owner` is the owner that this
   * response names.
   */
  correctRoute(topic: string, asked: TopicOwner, owner: TopicOwner | null): void {
    const known = this.#routes.get(topic);
    if (owner !== null && owner.owner !== "" && owner.epoch > Math.max(asked.epoch, known?.epoch ?? 0)) {
      this.#cacheRoute(topic, owner);
    } else if (known?.owner === asked.owner && known.epoch <= asked.epoch) {
      this.#routes.delete(topic);
    }
  }

  get size(): number {
    return this.#routes.size;
  }

  /**
   * Looks up the route of a topic without creating the topic. If there is no node, reads again after a sync, because
   * another process may have just created the topic.
   */
  async #searchRoute(topic: string): Promise<TopicRoute> {
    const known = this.#routeOf(topic, await this.#nodes.read(topic));
    if (known !== null) return known;
    const lacking = this.#unknownRoute();
    if (lacking !== null) return lacking;
    await this.#nodes.sync(topic);
    return this.#routeOf(topic, await this.#nodes.read(topic)) ?? { kind: "no topic" };
  }

  /** Returns the reason why a topic without a node must not be treated as new; null if the topic is new. */
  #unknownRoute(): TopicRoute | null {
    const awaited = this.#awaitedServers();
    return awaited.length === 0 ? null : { kind: "unknown owner", awaited };
  }

  /** Returns the route to the topic; null if the topic can be assigned to a server. */
  #routeOf(topic: string, read: VersionedTopicNode | null): TopicRoute | null {
    if (read === null) return null;
    const { owner, state } = read.node;
    if (state === "new" && !this.#list.servers.has(owner)) return null;
    const successor = this.#successorOf(topic, read.node);
    // The successor is not cached, because another proxy may have chosen another successor.
    if (successor !== null) return successor;
    this.#cacheRoute(topic, read.node);
    return this.#routeToOwner(read.node) ?? { kind: "unavailable", owner };
  }

  async #findOrAssign(topic: string): Promise<TopicRoute> {
    for (let tries = 0;; tries++) {
      const read = await this.#nodes.read(topic);
      const route = this.#routeOf(topic, read);
      if (route !== null) return route;
      // Servers create the nodes of their topics before they announce themselves. A node may therefore exist by now;
      // the creation then fails.
      const lacking = read === null ? this.#unknownRoute() : null;
      if (lacking !== null) return lacking;
      const assignment = await this.#assign(topic, read);
      if (assignment === "no servers") return { kind: "no servers" };
      // Another proxy was faster, or the response was lost. The current state must be read.
      if (assignment === "look again") await this.#nodes.settle(topic);
      if (tries >= triesMax) return { kind: "unavailable", owner: read?.node.owner ?? "" };
    }
  }

  async #assign(topic: string, read: VersionedTopicNode | null): Promise<"done" | "look again" | "no servers"> {
    const counts = await this.#countTopicsByServer();
    for (const [id, count] of this.#assigning) if (counts.has(id)) counts.set(id, (counts.get(id) ?? 0) + count);
    const target = chooseServerForTopic(counts);
    if (target === null) return "no servers";
    const store = this.#list.servers.get(target)?.store;
    this.#assigning.set(target, (this.#assigning.get(target) ?? 0) + 1);
    try {
      const outcome = read === null
        ? await this.#nodes.create(topic, topicNodeAfterAssignment(target, newGuid(), store))
        : await this.#nodes.write(topic, topicNodeAfterReassignment(read.node, target, store), read.version);
      if (outcome !== "written") return "look again";
      await this.#nodes.countForOwner(topic, target);
      if (read !== null && read.node.owner !== "") await this.#nodes.uncountForOwner(topic, read.node.owner);
      return "done";
    } finally {
      this.#assigning.set(target, (this.#assigning.get(target) ?? 1) - 1);
    }
  }

  /** Returns the number of topics of each server that is not draining. Sends all reads at the same time. */
  async #countTopicsByServer(): Promise<Map<string, number>> {
    const ids = [...this.#list.servers.values()].filter(({ isDraining }) => isDraining !== true).map(({ id }) => id);
    const stats = await Promise.all(ids.map((id) => this.#zk.exists(this.#path.ownedTopics(id))));
    return new Map(ids.map((id, index) => [id, stats[index]?.numChildren ?? 0]));
  }

  /**
   * Returns the server that takes over a shared store's topic after its owner is gone; null if there is no such server,
   * or no need.
   */
  #successorOf(topic: string, { owner, epoch, store }: TopicNode): TopicRoute | null {
    if (store === undefined || this.#list.servers.has(owner)) return null;
    const others = [...this.#list.servers.values()].filter((server) => server.store === store);
    const taking = others.filter(({ isDraining }) => isDraining !== true);
    const id = chooseTopicSuccessor(topic, (taking.length > 0 ? taking : others).map((server) => server.id));
    return id === null ? null : this.#routeToOwner({ owner: id, epoch });
  }

  #routeToOwner({ owner, epoch }: TopicOwner): TopicRoute | null {
    const server = this.#list.servers.get(owner);
    return server === undefined ? null : { kind: "server", id: owner, endpoint: server.endpoint, epoch };
  }

  #cacheRoute(topic: string, { owner, epoch }: TopicOwner): void {
    this.#routes.delete(topic);
    this.#routes.set(topic, { owner, epoch });
    if (this.#routes.size <= cachedRoutesMax) return;
    const [oldest] = this.#routes.keys();
    if (oldest !== undefined) this.#routes.delete(oldest);
  }
}

/**
 * Returns the server with the fewest topics; null if there is no server. If several servers have the fewest, returns
 * the one whose ID is the smallest in the order of UTF-16 code units.
 */
export function chooseServerForTopic(topics: ReadonlyMap<string, number>): string | null {
  let best: string | null = null;
  let fewest = Infinity;
  for (const [id, count] of topics) {
    if (count < fewest || (count === fewest && best !== null && id < best)) {
      best = id;
      fewest = count;
    }
  }
  return best;
}

/**
 * Returns the server that takes over the topic: the server with the highest hash of topic and ID. All proxies that see
 * the same servers thus choose the same server. The topics of a dead server are spread evenly, and no other topic
 * moves.
 */
export function chooseTopicSuccessor(topic: string, servers: Iterable<string>): string | null {
  let best: string | null = null;
  let highest = "";
  for (const id of servers) {
    const hash = sha256Hex(JSON.stringify([topic, id]));
    if (hash > highest) {
      best = id;
      highest = hash;
    }
  }
  return best;
}

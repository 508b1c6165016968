/**
 * Where a proxy sends a topic's requests. What it remembers is a hint and may be old: servers know better, and say so
 * (NOT_OWNER). So there is no watch on any topic, and what is remembered is bounded and lost without harm.
 */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { newGuid } from "../../support/guid.ts";
import type { PubsubPath } from "./pubsub_path.ts";
import type { AnnouncedServers } from "./server_list.ts";
import { assigned, reassigned } from "./topic_node.ts";
import { type ReadTopicNode, TopicNodes } from "./topic_nodes.ts";

/** Topics that are remembered, some 200 bytes each. */
export const routesMax = 100_000;
/** Assignments of one topic that are tried one after the other, others being faster each time. */
const triesMax = 20;

export type Route =
  | { readonly kind: "server"; readonly id: string; readonly endpoint: string; readonly epoch: number }
  /** Its owner is not there: it has the only copy, and is waited for. */
  | { readonly kind: "unavailable"; readonly owner: string }
  /** A new topic, and nobody to give it to: none is there, or they take no new ones. */
  | { readonly kind: "no servers" }
  /** It stands nowhere, and may be one that these servers have: the tree was lost, and they are not back. */
  | { readonly kind: "unknown owner"; readonly awaited: readonly string[] }
  /** Nothing was ever stored for it. Only for who does not create it. */
  | { readonly kind: "no topic" };

export interface RouteOptions {
  /** A topic that nobody has is given to a server; true when left out. */
  readonly creates?: boolean;
}

interface KnownOwner {
  readonly owner: string;
  readonly epoch: number;
}

export class TopicRouter {
  readonly #zk: ZooKeeper;
  readonly #path: PubsubPath;
  readonly #list: AnnouncedServers;
  readonly #nodes: TopicNodes;
  readonly #awaited: () => readonly string[];
  readonly #routes = new Map<string, KnownOwner>();
  readonly #lookups = new Map<string, Promise<Route>>();
  /** The same, of those that create nothing. */
  readonly #searches = new Map<string, Promise<Route>>();
  /** Assignments that are under way, and in no count yet. */
  readonly #assigning = new Map<string, number>();

  /** `awaited`: servers that may have topics of which the tree does not know. */
  constructor(zk: ZooKeeper, path: PubsubPath, list: AnnouncedServers, awaited: () => readonly string[] = () => []) {
    this.#awaited = awaited;
    this.#zk = zk;
    this.#path = path;
    this.#list = list;
    this.#nodes = new TopicNodes(zk, path);
  }

  /** At once, if it is known and its server is there: the way of almost every request. */
  cachedRoute(topic: string): Route | null {
    const known = this.#routes.get(topic);
    return known === undefined ? null : this.#toServer(known);
  }

  /** Reads the topic's node where it has to, and gives a new topic to a server. Rejects with the session's errors. */
  async route(topic: string, { creates = true }: RouteOptions = {}): Promise<Route> {
    const now = this.cachedRoute(topic);
    if (now !== null) return now;
    const lookups = creates ? this.#lookups : this.#searches;
    let lookup = lookups.get(topic);
    if (lookup === undefined) {
      lookup = (creates ? this.#findOrAssign(topic) : this.#search(topic)).finally(() => lookups.delete(topic));
      lookups.set(topic, lookup);
    }
    return await lookup;
  }

  /** A server has answered NOT_OWNER to a request that was sent by `asked`; `owner` is its hint. */
  correct(topic: string, asked: KnownOwner, owner: KnownOwner | null): void {
    const known = this.#routes.get(topic);
    if (owner !== null && owner.owner !== "" && owner.epoch > Math.max(asked.epoch, known?.epoch ?? 0)) {
      this.#remember(topic, owner);
    } else if (known?.owner === asked.owner && known.epoch <= asked.epoch) {
      this.#routes.delete(topic);
    }
  }

  /** Topics that are remembered. */
  get size(): number {
    return this.#routes.size;
  }

  /** That a topic is not there is said only by what is not older than the question: it may just have been made elsewhere. */
  async #search(topic: string): Promise<Route> {
    const known = this.#routeOf(topic, await this.#nodes.read(topic));
    if (known !== null) return known;
    const lacking = this.#unknownRoute();
    if (lacking !== null) return lacking;
    await this.#nodes.sync(topic);
    return this.#routeOf(topic, await this.#nodes.read(topic)) ?? { kind: "no topic" };
  }

  /** Why a topic that stands nowhere is not to be taken for a new one. */
  #unknownRoute(): Route | null {
    const awaited = this.#awaited();
    return awaited.length === 0 ? null : { kind: "unknown owner", awaited };
  }

  /** Null: it is free to be given to a server. */
  #routeOf(topic: string, read: ReadTopicNode | null): Route | null {
    if (read === null) return null;
    const { owner, state } = read.node;
    if (state === "new" && !this.#list.servers.has(owner)) return null;
    this.#remember(topic, read.node);
    return this.#toServer(read.node) ?? { kind: "unavailable", owner };
  }

  async #findOrAssign(topic: string): Promise<Route> {
    for (let tries = 0;; tries++) {
      const read = await this.#nodes.read(topic);
      const route = this.#routeOf(topic, read);
      if (route !== null) return route;
      // They make the nodes before they are back: what they have made meanwhile keeps this from being made.
      const lacking = read === null ? this.#unknownRoute() : null;
      if (lacking !== null) return lacking;
      const assignment = await this.#assign(topic, read);
      if (assignment === "no servers") return { kind: "no servers" };
      // Others were faster, or the answer was lost: what there is now must be seen.
      if (assignment === "look again") await this.#nodes.sync(topic);
      if (tries >= triesMax) return { kind: "unavailable", owner: read?.node.owner ?? "" };
    }
  }

  async #assign(topic: string, read: ReadTopicNode | null): Promise<"done" | "look again" | "no servers"> {
    const counts = await this.#counts();
    for (const [id, count] of this.#assigning) if (counts.has(id)) counts.set(id, (counts.get(id) ?? 0) + count);
    const target = chooseServer(counts);
    if (target === null) return "no servers";
    this.#assigning.set(target, (this.#assigning.get(target) ?? 0) + 1);
    try {
      const outcome = read === null
        ? await this.#nodes.create(topic, assigned(target, newGuid()))
        : await this.#nodes.write(topic, reassigned(read.node, target), read.version);
      if (outcome !== "written") return "look again";
      await this.#nodes.count(topic, target);
      if (read !== null && read.node.owner !== "") await this.#nodes.uncount(topic, read.node.owner);
      return "done";
    } finally {
      this.#assigning.set(target, (this.#assigning.get(target) ?? 1) - 1);
    }
  }

  /** What each server that takes new topics owns: a read for each, all in one write. */
  async #counts(): Promise<Map<string, number>> {
    const ids = [...this.#list.servers.values()].filter(({ isDraining }) => isDraining !== true).map(({ id }) => id);
    const stats = await Promise.all(ids.map((id) => this.#zk.exists(this.#path.ownedBy(id))));
    return new Map(ids.map((id, index) => [id, stats[index]?.numChildren ?? 0]));
  }

  #toServer({ owner, epoch }: KnownOwner): Route | null {
    const server = this.#list.servers.get(owner);
    return server === undefined ? null : { kind: "server", id: owner, endpoint: server.endpoint, epoch };
  }

  #remember(topic: string, { owner, epoch }: KnownOwner): void {
    this.#routes.delete(topic);
    this.#routes.set(topic, { owner, epoch });
    if (this.#routes.size <= routesMax) return;
    const [oldest] = this.#routes.keys();
    if (oldest !== undefined) this.#routes.delete(oldest);
  }
}

/** The one with the fewest topics; of several the one whose id is the smallest, compared as the paper's strings are. Null: none. */
export function chooseServer(topics: ReadonlyMap<string, number>): string | null {
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

/** A proxy's directory in a test's hand: which servers there are, and which has what. */
import type { BatonError } from "../../src/base/errors.ts";
import type { ProcessAnnouncement } from "../../src/pubsub/ownership/process_announcement.ts";
import type { FindRouteOptions, TopicOwner, TopicRoute } from "../../src/pubsub/ownership/topic_router.ts";
import type { TopicDirectory } from "../../src/pubsub/proxy/zookeeper_directory.ts";

export class FakeDirectory implements TopicDirectory {
  readonly servers = new Map<string, ProcessAnnouncement>();
  /** For servers of later versions. */
  later: readonly BatonError[] = [];
  isConnected = true;
  /** The truth: whose a topic is; `*` for those that are not named. */
  readonly owners = new Map<string, TopicOwner>();
  /** Lookups so far. */
  readonly looked: string[] = [];
  /** What was said to be wrong. */
  readonly corrections: { topic: string; asked: TopicOwner; hint: TopicOwner | null }[] = [];
  readonly #remembered = new Map<string, TopicOwner>();
  readonly #listeners = new Set<() => void>();

  /** Somebody is there, at this endpoint, and has these topics. */
  add({ id, endpoint }: { id: string; endpoint: string }, ...topics: string[]): void {
    this.servers.set(id, { id, endpoint, storeId: id });
    for (const topic of topics) this.give(topic, id);
    this.#tell();
  }

  remove(id: string): void {
    this.servers.delete(id);
    this.#tell();
  }

  give(topic: string, owner: string): void {
    this.owners.set(topic, { owner, epoch: (this.owners.get(topic)?.epoch ?? 0) + 1 });
  }

  cachedRoute(topic: string): TopicRoute | null {
    const known = this.#remembered.get(topic);
    const server = known === undefined ? undefined : this.servers.get(known.owner);
    if (known === undefined || server === undefined) return null;
    return { kind: "server", id: known.owner, endpoint: server.endpoint, epoch: known.epoch };
  }

  async findRoute(topic: string, { creates = true }: FindRouteOptions = {}): Promise<TopicRoute> {
    this.looked.push(topic);
    await Promise.resolve();
    if (!this.isConnected) throw new Error("nobody answers");
    const owner = this.owners.get(topic) ?? this.owners.get("*");
    if (owner === undefined && !creates) return { kind: "no topic" };
    if (owner === undefined) return { kind: "no servers" };
    this.#remembered.set(topic, owner);
    return this.cachedRoute(topic) ?? { kind: "unavailable", owner: owner.owner };
  }

  correctRoute(topic: string, asked: TopicOwner, hint: TopicOwner | null): void {
    this.corrections.push({ topic, asked, hint });
    if (hint === null) this.#remembered.delete(topic);
    else this.#remembered.set(topic, hint);
  }

  listTopics(): Promise<readonly string[]> {
    return Promise.resolve([...this.owners.keys()]);
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

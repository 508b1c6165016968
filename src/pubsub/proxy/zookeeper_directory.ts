/**
 * The topic directory of a proxy, in ZooKeeper: reads the list of servers, announces the proxy, and starts again when a
 * session has ended. Between sessions, the directory uses the last list; if a route is outdated, servers correct it.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../base/errors.ts";
import { whenAborted } from "../../base/support/abort.ts";
import type { Clock } from "../../base/support/clock.ts";
import { announceProcess } from "../ownership/announcements.ts";
import { type ProcessAnnouncement } from "../ownership/process_announcement.ts";
import { readTopicList } from "../ownership/topic_nodes.ts";
import type { PubsubPath } from "../ownership/pubsub_path.ts";
import { AnnouncedServers } from "../ownership/announced_servers.ts";
import { serveOwnershipSessions } from "../ownership/serve_sessions.ts";
import { type FindRouteOptions, type TopicOwner, type TopicRoute, TopicRouter } from "../ownership/topic_router.ts";
import { ListenerSet } from "../../base/support/event.ts";

export interface ZookeeperTopicDirectoryOptions {
  readonly path: PubsubPath;
  readonly clock: Clock;
  /** Reports problems that need no action, because the directory tries again. */
  readonly onProblem: (problem: unknown) => void;
}

/** The maximum age of a list of topics, in milliseconds. A new list costs one read for each topic. */
const topicsMsMax = 1000;

interface DirectorySession {
  readonly zk: ZooKeeper;
  readonly list: AnnouncedServers;
  readonly router: TopicRouter;
}

/** Topics and servers as a proxy knows them: where to send each request. Tests use a fake. */
export type TopicDirectory = Pick<
  ZookeeperTopicDirectory,
  "servers" | "later" | "isConnected" | "cachedRoute" | "findRoute" | "correctRoute" | "listTopics" | "subscribe"
>;

export class ZookeeperTopicDirectory {
  /** Resolves after the first read of the servers. */
  readonly ready: Promise<void>;
  readonly #ready = Promise.withResolvers<void>();
  readonly #options: ZookeeperTopicDirectoryOptions;
  readonly #changes = new ListenerSet();
  readonly #resetDetector = new ResetDetector();
  readonly #reportedLater = new Set<string>();
  #current: DirectorySession | null = null;
  #isConnected = false;
  #topics: { readonly readMs: number; readonly names: Promise<readonly string[]> } | null = null;

  constructor(options: ZookeeperTopicDirectoryOptions) {
    this.#options = options;
    this.ready = this.#ready.promise;
  }

  /** The announced servers by ID, as last read. */
  get servers(): ReadonlyMap<string, ProcessAnnouncement> {
    return this.#current?.list.servers ?? new Map();
  }

  /** The errors for servers of later versions, which this proxy cannot use. */
  get later(): readonly BatonError[] {
    return this.#current?.list.later ?? [];
  }

  get isConnected(): boolean {
    return this.#isConnected && this.#current?.zk.session.state === "connected";
  }

  /** Keeps the proxy announced. Rejects with the signal's reason, or with CONFIG if another proxy has this ID. */
  run(
    open: (signal: AbortSignal) => Promise<ZooKeeper>,
    announcement: ProcessAnnouncement,
    signal: AbortSignal,
  ): Promise<never> {
    const { clock, onProblem } = this.#options;
    const serve = (zk: ZooKeeper, announced: () => void) => this.#serve(zk, announcement, { signal, announced });
    return serveOwnershipSessions(open, serve, { clock, onProblem, signal });
  }

  /** Returns the route if it is known without a request; otherwise null. */
  cachedRoute(topic: string): TopicRoute | null {
    return this.#current?.router.cachedRoute(topic) ?? null;
  }

  /**
   * Looks up the route. If `creates` is true, assigns a new topic to a server. Rejects if the coordination service does
   * not respond.
   */
  async findRoute(topic: string, options: FindRouteOptions): Promise<TopicRoute> {
    return await this.#requireSession().router.findRoute(topic, options);
  }

  /**
   * Corrects the route after a server has responded that it does not own the topic. `hint` is the owner that the server
   * names; null if it names none.
   */
  correctRoute(topic: string, asked: TopicOwner, hint: TopicOwner | null): void {
    this.#current?.router.correctRoute(topic, asked, hint);
  }

  /** Lists all topics. Rejects as `findRoute` does. */
  listTopics(): Promise<readonly string[]> {
    const nowMs = this.#options.clock.now();
    if (this.#topics !== null && nowMs - this.#topics.readMs < topicsMsMax) return this.#topics.names;
    const names = this.#readTopics();
    this.#topics = { readMs: nowMs, names };
    names.catch(() => this.#topics = null);
    return names;
  }

  /** Calls `listener` when servers join or leave. Returns a function that removes the listener. */
  subscribe(listener: () => void): () => void {
    return this.#changes.subscribe(listener);
  }

  async #serve(
    zk: ZooKeeper,
    announcement: ProcessAnnouncement,
    { signal, announced }: { readonly signal: AbortSignal; readonly announced: () => void },
  ): Promise<void> {
    const { path, clock, onProblem } = this.#options;
    const over = AbortSignal.any([zk.session.ended, signal]);
    using list = await AnnouncedServers.read(zk, path.servers, clock);
    const check = () => {
      this.#checkForReset(list);
      this.#reportLater(list);
    };
    check();
    list.subscribe(() => {
      check();
      this.#changes.notify();
    });
    this.#current = { zk, list, router: new TopicRouter(zk, path, list, () => this.#resetDetector.awaitedServers) };
    this.#isConnected = true;
    this.#ready.resolve();
    this.#changes.notify();
    try {
      await announceProcess(zk, path.proxy(announcement.id), announcement, { clock, onProblem, signal: over });
      announced();
      await whenAborted(over);
    } finally {
      this.#isConnected = false;
    }
  }

  /** Reports each server of a later version once. */
  #reportLater({ later }: AnnouncedServers): void {
    for (const error of later) {
      if (this.#reportedLater.has(error.message)) continue;
      this.#reportedLater.add(error.message);
      this.#options.onProblem(error);
    }
  }

  #checkForReset(list: AnnouncedServers): void {
    if (!this.#resetDetector.observe(list)) return;
    const names = this.#resetDetector.awaitedServers.map((id) => `"${id}"`).join(", ");
    const sentence =
      "The coordination service has lost its data. This proxy assigns no new topics until these servers " +
      `have announced themselves again: ${names}; if a server is lost for good, restart the proxies`;
    this.#options.onProblem(new BatonError("CONFIG", sentence));
  }

  async #readTopics(): Promise<readonly string[]> {
    const names: string[] = [];
    // A topic that was deleted or given up, and not written since, does not exist.
    for await (const { topic, node } of readTopicList(this.#requireSession().zk, this.#options.path)) {
      if (node.owner !== "") names.push(topic);
    }
    return names;
  }

  #requireSession(): DirectorySession {
    if (this.#current !== null && this.#isConnected) return this.#current;
    throw new BatonError("UNREACHABLE", "The coordination service does not answer at present");
  }
}

/**
 * Detects that the coordination service has lost its data while this proxy ran, for example because its data directory
 * was emptied. Topics that existed before are not new: their servers create the nodes again before they announce
 * themselves. Until all these servers have done so, the proxy cannot tell which topics are new.
 */
class ResetDetector {
  /** Identifies the tree of nodes; null before the first read. */
  #tree: string | null = null;
  /** Servers that were announced at the last read. */
  #servers: readonly string[] = [];
  readonly #awaitedServers = new Set<string>();

  /** Servers that have not announced themselves since the reset. */
  get awaitedServers(): readonly string[] {
    return [...this.#awaitedServers].sort();
  }

  /** Compares each list of servers with the previous one. Returns true if the tree is new and servers are missing. */
  observe({ treeId, servers }: Pick<AnnouncedServers, "treeId" | "servers">): boolean {
    const isOther = this.#tree !== null && this.#tree !== treeId;
    if (isOther) { for (const id of this.#servers) this.#awaitedServers.add(id); }
    for (const id of servers.keys()) this.#awaitedServers.delete(id);
    this.#tree = treeId;
    this.#servers = [...servers.keys()];
    return isOther && this.#awaitedServers.size > 0;
  }
}

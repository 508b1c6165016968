/**
 * Publish/subscribe as a whole: a keeper, servers and proxies, as objects of this process or as processes of baton (the
 * source under Bun, or the binary that BATON_BINARY names). Everything on free ports and in one folder, which goes with
 * it.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DatabaseAddress } from "../../src/base/postgres/database_address.ts";
import { connectToZooKeeper } from "../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../src/protocols/zookeeper/hosts.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { readTopicList } from "../../src/pubsub/ownership/topic_nodes.ts";
import { PubsubPath } from "../../src/pubsub/ownership/pubsub_path.ts";
import type { TopicStoreOptions } from "../../src/pubsub/store/limits/topic_store_limits.ts";
import { newGuid } from "../../src/base/support/guid.ts";
import type { RunningBackend } from "./backend.ts";
import { freePorts } from "./free_ports.ts";
import { startKeeperProcess } from "./keeper_server.ts";
import { ProxyClient } from "./proxy_client.ts";
import { type ClusterNode, ProcessNode, ProxyObject, ServerObject, type Surroundings } from "./pubsub_nodes.ts";

export type { ClusterNode } from "./pubsub_nodes.ts";

export interface PubsubClusterOptions {
  /** How many, named s1, s2 … and p1, p2 …; 1 each when left out. */
  readonly servers?: number;
  readonly proxies?: number;
  /** Processes can be stopped, continued and killed; objects start sooner. */
  readonly as?: "objects" | "processes";
  /** A coordination service that runs already; it is left running. */
  readonly backend?: RunningBackend;
  /** 4,000 when left out. */
  readonly sessionTimeoutMs?: number;
  /** A random one when left out. */
  readonly root?: string;
  /** Of servers that are objects. */
  readonly store?: Partial<TopicStoreOptions>;
  /** A database that servers share; objects only. */
  readonly database?: DatabaseAddress;
  /** How often its servers give topics to those with fewer; never when left out. */
  readonly balanceEveryMs?: number;
  /** The URL of that database; processes only. */
  readonly databaseUrl?: string;
  /** More words for `baton pubsub server` and `proxy`; processes only. */
  readonly serverWords?: readonly string[];
  readonly proxyWords?: readonly string[];
}

export class PubsubCluster implements AsyncDisposable {
  readonly folder: string;
  readonly root: string;
  readonly path: PubsubPath;
  readonly backend: RunningBackend;
  /** By id, those that were stopped or killed included. */
  readonly servers = new Map<string, ClusterNode>();
  readonly proxies = new Map<string, ClusterNode>();
  /** What roles that are objects have reported. */
  readonly problems: unknown[] = [];
  /** The present session of each role that is an object: to end it is to have it expire. */
  readonly sessions = new Map<string, ZooKeeper>();
  readonly #options: PubsubClusterOptions;
  readonly #ends: (() => Promise<unknown>)[] = [];

  static async start(options: PubsubClusterOptions = {}): Promise<PubsubCluster> {
    const backend = options.backend ?? await startKeeperProcess();
    const cluster = new PubsubCluster(backend, options);
    try {
      const names = (letter: string, count = 1) => Array.from({ length: count }, (_, at) => `${letter}${at + 1}`);
      await Promise.all(names("s", options.servers).map((id) => cluster.startServer(id)));
      await Promise.all(names("p", options.proxies).map((id) => cluster.startProxy(id)));
      return cluster;
    } catch (thrown) {
      await cluster[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  private constructor(backend: RunningBackend, options: PubsubClusterOptions) {
    this.backend = backend;
    this.#options = options;
    this.root = options.root ?? `/pubsub-${newGuid().slice(0, 12)}`;
    this.path = new PubsubPath(this.root);
    this.folder = mkdtempSync(join(tmpdir(), "baton-pubsub-"));
  }

  /**
   * One more server, which resolves when it serves. Its data outlives it; `restart` brings it back. `hasOwnStore`: it
   * has a data directory, whatever the others have.
   */
  async startServer(id: string, { hasOwnStore = false } = {}): Promise<ClusterNode> {
    const around = { ...this.#surroundings(id), ...(hasOwnStore ? { database: undefined } : {}) };
    const dataDir = join(this.folder, "data", id);
    const { databaseUrl, serverWords = [] } = this.#options;
    const hasDatabase = databaseUrl !== undefined && !hasOwnStore;
    const store = hasDatabase ? ["--store", databaseUrl] : ["--data-dir", dataDir];
    const words = ["server", "--id", id, ...store, ...serverWords];
    const node = this.#options.as === "processes"
      ? new ProcessNode(id, around, { words, says: / serves \S+ at (\S+),/ })
      : new ServerObject(id, around, dataDir);
    this.servers.set(id, node);
    await node.restart();
    return node;
  }

  /** One more proxy, which keeps its endpoint when it is restarted. */
  async startProxy(id: string): Promise<ClusterNode> {
    const around = this.#surroundings(id);
    const [port] = await freePorts(1);
    const listen = `tcp://127.0.0.1:${port}`;
    const words = ["proxy", "--id", id, "--listen", listen, ...this.#options.proxyWords ?? []];
    const node = this.#options.as === "processes"
      ? new ProcessNode(id, around, { words, says: / takes requests at (\S+),/ })
      : new ProxyObject(id, around, listen);
    this.proxies.set(id, node);
    await node.restart();
    return node;
  }

  server(id: string): ClusterNode {
    return this.servers.get(id) as ClusterNode;
  }

  proxy(id = "p1"): ClusterNode {
    return this.proxies.get(id) as ClusterNode;
  }

  /** A client of one proxy; it is closed with the cluster. */
  client(proxy = "p1"): ProxyClient {
    const client = new ProxyClient(this.proxy(proxy).endpoint);
    this.#ends.push(() => client[Symbol.asyncDispose]());
    return client;
  }

  /** A session of the test's own; it is closed with the cluster. */
  async session(): Promise<ZooKeeper> {
    const zk = await this.#connect();
    this.#ends.push(() => zk.close());
    return zk;
  }

  /** Who has each topic. */
  async owners(): Promise<Map<string, string>> {
    await using zk = await this.#connect();
    const owners = new Map<string, string>();
    for await (const { topic, node } of readTopicList(zk, this.path)) owners.set(topic, node.owner);
    return owners;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#ends.map((end) => end()));
    const nodes = [...this.proxies.values(), ...this.servers.values()];
    await Promise.all(nodes.map((node) => node.kill()));
    if (this.#options.backend === undefined) await this.backend.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #connect(signal?: AbortSignal): Promise<ZooKeeper> {
    const { sessionTimeoutMs = 4000 } = this.#options;
    const aborting = signal === undefined ? {} : { signal };
    return connectToZooKeeper({ servers: parseZooKeeperServers(this.backend.servers), sessionTimeoutMs, ...aborting });
  }

  #surroundings(id: string): Surroundings {
    const { sessionTimeoutMs = 4000 } = this.#options;
    return {
      folder: this.folder,
      path: this.path,
      connect: async (signal) => {
        const zk = await this.#connect(signal);
        this.sessions.set(id, zk);
        return zk;
      },
      onProblem: (problem) => this.problems.push(problem),
      store: this.#options.store,
      database: this.#options.database,
      balanceEveryMs: this.#options.balanceEveryMs,
      words: [
        ...["--servers", this.backend.servers, "--root", this.root],
        ...["--session-timeout", `${sessionTimeoutMs}ms`],
      ],
    };
  }
}

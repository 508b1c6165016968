/** The members of a publish/subscribe cluster in tests: each role as an object, or as a process. */
import process from "node:process";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import type { TopicStoreOptions } from "../../src/pubsub/store/limits/topic_store_limits.ts";
import type { PubsubPath } from "../../src/pubsub/ownership/pubsub_path.ts";
import { PubsubProxy } from "../../src/pubsub/proxy/pubsub_proxy.ts";
import { ZookeeperTopicDirectory } from "../../src/pubsub/proxy/zookeeper_directory.ts";
import type { DatabaseAddress } from "../../src/base/postgres/database_address.ts";
import { openPostgresStore } from "../../src/pubsub/store/postgres/open_postgres_store.ts";
import type { TopicStoreHooks } from "../../src/pubsub/store/topic_store.ts";
import { TopicServer } from "../../src/pubsub/server/topic_server.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { eventually } from "./eventually.ts";
import { batonCommand } from "./keeper_server.ts";
import { ServerProcess } from "./server_process.ts";

export interface ClusterNode {
  readonly id: string;
  /** Where it listens; of a server another one after each start. */
  readonly endpoint: string;
  /** -1 for an object. */
  readonly pid: number;
  /** What it has said last. */
  readonly output: string;
  /** SIGSTOP and SIGCONT; processes only. */
  pause(): void;
  resume(): void;
  /** SIGKILL, or for an object its end at once. */
  kill(): Promise<void>;
  /** SIGTERM, and waits for the end. */
  stop(): Promise<void>;
  /** Kills it if it runs, starts it, and waits until it serves. */
  restart(): Promise<void>;
}

export interface Surroundings {
  /** Where a process works; it goes with the test's process. */
  readonly folder: string;
  readonly path: PubsubPath;
  readonly connect: (signal: AbortSignal) => Promise<ZooKeeper>;
  readonly onProblem: (problem: unknown) => void;
  /** Of a server that is an object. */
  readonly store?: Partial<TopicStoreOptions> | undefined;
  /** A database that all servers share, instead of data directories; objects only. */
  readonly database?: DatabaseAddress | undefined;
  /** Of a server that is an object and shares a database; null: never. */
  readonly balanceEveryMs?: number | null | undefined;
  /** Where it coordinates, as words for a process. */
  readonly words: readonly string[];
  /** More for a process's environment. */
  readonly env?: Readonly<Record<string, string>>;
}

const startMsMax = 30_000;
/** Of a request that does not say how long it waits: a busy machine is no reason to be told OVERLOADED. */
const requestTimeoutMs = 20_000;

export class ProcessNode implements ClusterNode {
  readonly id: string;
  endpoint = "";
  readonly #around: Surroundings;
  readonly #words: readonly string[];
  readonly #says: RegExp;
  #process: ServerProcess | null = null;

  /** `says`: what it says when it serves, with the endpoint as the first group. */
  constructor(id: string, around: Surroundings, { words, says }: { words: readonly string[]; says: RegExp }) {
    this.id = id;
    this.#around = around;
    this.#words = words;
    this.#says = says;
  }

  get pid(): number {
    return this.#process?.pid ?? -1;
  }

  get output(): string {
    return this.#process?.output ?? "";
  }

  pause(): void {
    this.#process?.signal("SIGSTOP");
  }

  resume(): void {
    this.#process?.signal("SIGCONT");
  }

  async kill(): Promise<void> {
    await this.#process?.kill();
  }

  async stop(): Promise<void> {
    this.#process?.signal("SIGTERM");
    await this.#process?.exited;
  }

  async restart(): Promise<void> {
    await this.kill();
    const { folder, words, env } = this.#around;
    const server = this.#process = new ServerProcess([...batonCommand(), "pubsub", ...this.#words, ...words], {
      folder,
      env: { ...process.env, ...env } as Record<string, string>,
    });
    const served = () => this.#says.exec(server.output)?.[1];
    await eventually(() => !server.alive || served() !== undefined, {
      withinMs: startMsMax,
      what: `${this.id} to serve; it said: ${server.output}`,
    });
    if (!server.alive) throw new Error(`${this.id} ended at its start: ${server.output}`);
    this.endpoint = served() ?? "";
  }
}

abstract class ObjectNode implements ClusterNode {
  readonly id: string;
  readonly pid = -1;
  readonly output = "";
  protected readonly around: Surroundings;

  constructor(id: string, around: Surroundings) {
    this.id = id;
    this.around = around;
  }

  abstract readonly endpoint: string;
  abstract kill(): Promise<void>;
  abstract stop(): Promise<void>;
  protected abstract start(): Promise<void>;

  pause(): void {
    throw new Error(`${this.id} is an object of this process: it cannot be stopped alone`);
  }

  resume(): void {}

  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }
}

export class ServerObject extends ObjectNode {
  readonly #dataDir: string;
  #server: TopicServer | null = null;

  constructor(id: string, around: Surroundings, dataDir: string) {
    super(id, around);
    this.#dataDir = dataDir;
  }

  get endpoint(): string {
    return this.#server?.endpoint ?? "";
  }

  get isDraining(): boolean {
    return this.#server?.isDraining ?? false;
  }

  async kill(): Promise<void> {
    await this.#server?.close();
  }

  async stop(): Promise<void> {
    await this.#server?.leave({ withinMs: 5000 });
  }

  protected async start(): Promise<void> {
    const { path, connect, onProblem, store, database, balanceEveryMs = null } = this.around;
    this.#server = await TopicServer.start({
      ...(store === undefined ? {} : { store }),
      ...(database === undefined ? {} : {
        openSharedStore: (hooks: TopicStoreHooks, options: Partial<TopicStoreOptions>) =>
          openPostgresStore(database, hooks, { server: this.id, ...options }),
      }),
      ...{ id: this.id, dataDir: database === undefined ? this.#dataDir : null, listen: "tcp://127.0.0.1:0" },
      ...{ path, connect, onProblem, clock: systemClock(), balanceEveryMs },
    });
  }
}

export class ProxyObject extends ObjectNode {
  readonly endpoint: string;
  #proxy: PubsubProxy | null = null;
  #leave: (() => Promise<void>) | null = null;

  constructor(id: string, around: Surroundings, listen: string) {
    super(id, around);
    this.endpoint = listen;
  }

  async kill(): Promise<void> {
    await this.#proxy?.close();
    await this.#leave?.();
  }

  async stop(): Promise<void> {
    await this.#proxy?.drain(5000);
    await this.#leave?.();
  }

  protected async start(): Promise<void> {
    const { id, endpoint, around: { path, connect, onProblem } } = this;
    const clock = systemClock();
    const stopping = new AbortController();
    const directory = new ZookeeperTopicDirectory({ path, clock, onProblem });
    const running = directory.run(connect, { id, endpoint, storeId: id }, stopping.signal);
    const ended = running.catch((thrown: unknown) => void (stopping.signal.aborted || onProblem(thrown)));
    this.#leave = async () => {
      stopping.abort(new Error("stopped"));
      await ended;
    };
    this.#proxy = new PubsubProxy({ id, directory, clock, requestTimeoutMs });
    await this.#proxy.listen(endpoint);
    await Promise.race([directory.ready, running]);
  }
}

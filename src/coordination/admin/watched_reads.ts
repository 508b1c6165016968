/**
 * A client that requests a node again only after a watch has reported a change of it. Owns what was read, and one watch for each node
 * that exists. A reader uses it for as long as it follows the same few nodes.
 */
import type { Watcher, WatchEvent, ZooKeeper } from "../../zookeeper/zookeeper.ts";
import type { Clock } from "../../support/clock.ts";
import { sleep } from "../../support/deadline.ts";
import { isRefusal } from "../request_errors.ts";

/** Starts the requests of a short time together, so that they share a packet, and mostly their responses, too. */
export class RequestGate {
  readonly #clock: Clock;
  #opening: Promise<void> | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  pass(): Promise<void> {
    return this.#opening ??= sleep(this.#clock, gateMs).finally(() => this.#opening = null);
  }
}

/** Milliseconds. */
const gateMs = 10;

interface WatchedReadsOptions {
  /**
   * False: only lists are watched, and data is kept until `forget`. That halves the events of nodes that are created and deleted, and
   * hardly ever written.
   */
  readonly watchesData?: boolean;
  /** Each request waits for it. */
  readonly gate?: RequestGate;
}

export class WatchedReads {
  /** The same client, but `getData` and `getChildren` are answered from what was read, and `sync` does nothing. */
  readonly client: ZooKeeper;
  readonly #zk: ZooKeeper;
  readonly #onChange: Watcher;
  readonly #gate: RequestGate | undefined;
  /** Answers by kind and path; a request that is in flight, too. */
  readonly #read = new Map<string, Promise<unknown>>();
  /** Nodes that do not exist, while the list of their parent is watched. */
  readonly #missing = new Map<string, Promise<unknown>>();
  /** The same function for each read of a node: the client keeps a set of them. */
  readonly #watchers = new Map<string, Watcher>();
  #connections: number;

  /** `onChange`: called for each change of a node that was read. */
  constructor(zk: ZooKeeper, onChange: Watcher, { watchesData = true, gate }: WatchedReadsOptions = {}) {
    this.#gate = gate;
    this.#zk = zk;
    this.#onChange = onChange;
    this.#connections = zk.session.connections;
    const reads: Partial<ZooKeeper> = {
      getData: (path, options) =>
        this.#answer("data", path, (watch) => zk.getData(path, watchesData ? { ...options, watch } : options)),
      getChildren: (path, options) =>
        this.#answer("children", path, (watch) => zk.getChildren(path, { ...options, watch })),
      sync: () => Promise.resolve(),
    };
    this.client = new Proxy(zk, {
      get(client, name: keyof ZooKeeper) {
        const value: unknown = reads[name] ?? client[name];
        return typeof value === "function" ? value.bind(client) : value;
      },
    });
  }

  /** Reads everything again, in case a watch was lost. */
  forget(): void {
    this.#read.clear();
    this.#missing.clear();
  }

  #answer<T>(kind: "data" | "children", path: string, read: (watch: Watcher) => Promise<T>): Promise<T> {
    const { connections } = this.#zk.session;
    // A watch that the client has set again after a reconnect is not reliable.
    if (connections !== this.#connections) this.forget();
    this.#connections = connections;
    const key = `${kind} ${path}`;
    const known = (this.#read.get(key) ?? this.#missing.get(key)) as Promise<T> | undefined;
    if (known !== undefined) return known;
    const start = () => read(this.#watcherOf(key));
    const answer = this.#gate === undefined ? start() : this.#gate.pass().then(start);
    this.#read.set(key, answer);
    answer.catch((thrown) => this.#refused(key, path, answer, thrown));
    return answer;
  }

  #refused(key: string, path: string, answer: Promise<unknown>, thrown: unknown): void {
    if (this.#read.get(key) !== answer) return; // a change was reported meanwhile
    this.#drop(key);
    this.#watchers.delete(key);
    const parent = `children ${path.slice(0, path.lastIndexOf("/"))}`;
    if (isRefusal(thrown, "NONODE") && this.#read.has(parent)) this.#missing.set(key, answer);
  }

  #watcherOf(key: string): Watcher {
    const known = this.#watchers.get(key);
    if (known !== undefined) return known;
    const watcher = (event: WatchEvent) => {
      this.#watchers.delete(key);
      this.#drop(key);
      this.#onChange(event);
    };
    this.#watchers.set(key, watcher);
    return watcher;
  }

  /** A missing node may exist when the list of its parent is no longer watched. */
  #drop(key: string): void {
    this.#read.delete(key);
    if (key.startsWith("children ")) this.#missing.clear();
  }
}

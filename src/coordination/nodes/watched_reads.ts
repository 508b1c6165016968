/**
 * Keeps what a client has read, and requests a node again only after a change. The owner of this object reports the
 * changes; by default, a watch on each existing node does. Used to read the same few nodes again and again.
 */
import type { NodeData, Stat, Watcher, WatchEvent, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { isServerRefusal } from "./node_requests.ts";
import { replaceZooKeeperCalls } from "./replaced_calls.ts";

interface WatchedReadsOptions {
  /**
   * If false, only lists are watched, and data is kept until `forget` is called. This halves the events for nodes that
   * are created and deleted but rarely written.
   */
  readonly watchesData?: boolean;
  /** If true, the owner of this object calls `report` for each change, and no watch is set. */
  readonly isReported?: boolean;
}

interface ChildList {
  readonly children: string[];
  readonly stat: Stat;
}

export class NodeReadCache {
  /** A client whose `getData` and `getChildren` return what is kept, and whose `sync` does nothing. */
  readonly client: ZooKeeper;
  readonly #zk: ZooKeeper;
  readonly #onChange: Watcher;
  readonly #isReported: boolean;
  /** The answers by kind and path, including requests whose response has not arrived. */
  readonly #read = new Map<string, Promise<unknown>>();
  /** The lists that `report` keeps up to date. Their `stat` does not change after the list was read. */
  readonly #lists = new Map<string, { readonly names: Set<string>; readonly stat: Stat }>();
  /** Answers for missing nodes. They are kept while the list of the parent is watched or changes are reported. */
  readonly #missing = new Map<string, Promise<unknown>>();
  /** The watcher of each node. There is one function for each node, because the client keeps a set of functions. */
  readonly #watchers = new Map<string, Watcher>();
  #connections: number;

  /** Calls `onChange` for each change of a node that was read, unless `isReported` is true. */
  constructor(zk: ZooKeeper, onChange: Watcher, { watchesData = true, isReported = false }: WatchedReadsOptions = {}) {
    this.#isReported = isReported;
    this.#zk = zk;
    this.#onChange = onChange;
    this.#connections = zk.session.connections;
    const reads: Partial<ZooKeeper> = {
      getData: (path, options) =>
        this.#answer<NodeData>(
          `data ${path}`,
          path,
          (watch) => zk.getData(path, watchesData ? { ...options, ...watch } : options),
        ),
      getChildren: (path, options) => this.#children(path, (watch) => zk.getChildren(path, { ...options, ...watch })),
      sync: () => Promise.resolve(),
    };
    this.client = replaceZooKeeperCalls(zk, reads);
  }

  /** Drops all answers, so that everything is read again. Used if a report may have been lost. */
  forget(): void {
    this.#read.clear();
    this.#lists.clear();
    this.#missing.clear();
  }

  /**
   * Reports that a node was created, deleted or written. If a request for the node is under way, its answer is not
   * kept, because it may be older than the change.
   */
  report({ type, path }: WatchEvent): void {
    this.#forgetNode(`data ${path}`);
    if (type === "dataChanged") return;
    this.#forgetNode(`children ${path}`);
    const slash = path.lastIndexOf("/");
    const key = `children ${path.slice(0, slash)}`;
    const list = this.#lists.get(key);
    if (list === undefined) this.#forgetNode(key);
    else if (type === "created") list.names.add(path.slice(slash + 1));
    else list.names.delete(path.slice(slash + 1));
  }

  #forgetNode(key: string): void {
    this.#read.delete(key);
    this.#lists.delete(key);
    this.#missing.delete(key);
  }

  #children(
    path: string,
    read: (options: { readonly watch?: Watcher }) => Promise<ChildList>,
  ): Promise<ChildList> {
    const key = `children ${path}`;
    this.#forgetAfterReconnect();
    const list = this.#lists.get(key);
    if (list !== undefined) return Promise.resolve({ children: [...list.names], stat: list.stat });
    const answer = this.#answer(key, path, read);
    if (this.#isReported) {
      answer.then(({ children, stat }) => {
        if (this.#read.get(key) === answer) this.#lists.set(key, { names: new Set(children), stat });
      }, () => {});
    }
    return answer;
  }

  #forgetAfterReconnect(): void {
    const { connections } = this.#zk.session;
    // A watch that the client has set again after a reconnect may miss changes.
    if (connections !== this.#connections) this.forget();
    this.#connections = connections;
  }

  #answer<T>(key: string, path: string, read: (options: { readonly watch?: Watcher }) => Promise<T>): Promise<T> {
    this.#forgetAfterReconnect();
    const known = (this.#read.get(key) ?? this.#missing.get(key)) as Promise<T> | undefined;
    if (known !== undefined) return known;
    const answer = read(this.#isReported ? {} : { watch: this.#watcherOf(key) });
    this.#read.set(key, answer);
    answer.catch((thrown) => this.#refused(key, path, answer, thrown));
    return answer;
  }

  #refused(key: string, path: string, answer: Promise<unknown>, thrown: unknown): void {
    if (this.#read.get(key) !== answer) return; // a change was reported meanwhile
    this.#drop(key);
    this.#watchers.delete(key);
    const parent = `children ${path.slice(0, path.lastIndexOf("/"))}`;
    const isFollowed = this.#isReported || this.#read.has(parent);
    if (isServerRefusal(thrown, "NONODE") && isFollowed) this.#missing.set(key, answer);
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

  /**
   * Drops an answer. If no list is watched, missing nodes may be created without a report, so the answers about them
   * are dropped, too.
   */
  #drop(key: string): void {
    this.#read.delete(key);
    if (!this.#isReported && key.startsWith("children ")) this.#missing.clear();
  }
}

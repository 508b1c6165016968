/**
 * Follows all objects (locks, elections …) in some folders. Reads an object again after each change, and all objects
 * from time to time.
 */
import { type Clock, systemClock } from "../../base/support/clock.ts";
import { resultInTimeOrNull, sleep } from "../../base/support/deadline.ts";
import type { NodeData, NodeReadOptions, Watcher, WatchEvent, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { decodeLockName } from "../nodes/node_paths.ts";
import { readNodesOnChange } from "../nodes/read_nodes_on_change.ts";
import { isUnknownOperationError, ZooKeeperError } from "../../protocols/zookeeper/zookeeper_error.ts";
import { hiddenIfNoAuth, isTransientFailure, mapInBatches, nullIfNoNode } from "../nodes/node_requests.ts";
import { restMsAfterNodeRead } from "../nodes/follow_reads.ts";
import { replaceZooKeeperCalls } from "../nodes/replaced_calls.ts";
import { NodeReadCache } from "../nodes/watched_reads.ts";

export interface FollowedObjectFolder<Value> {
  readonly path: string;
  /** If true, keeps the nodes that were read, and requests only changed nodes again. `read` then sets no watches. */
  readonly keepsReads?: boolean;
  /**
   * Reads one object. Returns null if there is nothing to show. `read` may use `watch` only for existing nodes: a watch
   * on a missing node of a deleted object would never end. `watch` is the same function as long as the object is
   * followed.
   */
  readonly read: (zk: ZooKeeper, name: string, watch: Watcher) => Promise<Value | null>;
}

export interface FollowedObjectChange<Value> {
  readonly folder: string;
  readonly name: string;
  /** The object; null if there is nothing to show, or the object was deleted. */
  readonly value: Value | null;
}

/** The result of one round of reading. */
export interface FollowedFoldersRound<Value> {
  readonly changes: readonly FollowedObjectChange<Value>[];
  readonly unread: number;
  /** The number of objects that are not followed, because their folder has too many. */
  readonly omitted: number;
}

interface FollowFoldersOptions {
  readonly signal: AbortSignal;
  readonly clock?: Clock;
  /** The most objects that are followed in one folder. */
  readonly objectsMax?: number;
  /** Minimum time between the starts of two rounds, in milliseconds. Changes within this time are read together. */
  readonly gatherMs?: number;
}

/** The most objects that are read in one round, all at the same time. */
const roundMax = 200;
const batchSize = 200;
const objectsMaxDefault = 10_000;
const gatherMsDefault = 500;
/**
 * Every object is read again after this time, in milliseconds, because the report of a change may be lost. Without a
 * recursive watch, only this reveals changes of data.
 */
const sweepMs = { recursive: 600_000, oneShot: 120_000 } as const;
const sweepEveryMs = 5000;

/**
 * Yields what each round has found. On each folder there is one recursive watch. If the servers have no recursive
 * watches, there is a one-shot watch on each list of an object. Ends when the signal aborts. Throws when the session
 * ends or the server refuses a read.
 */
export function followObjectFolders<Value>(
  zk: ZooKeeper,
  folders: readonly FollowedObjectFolder<Value>[],
  { signal, clock = systemClock(), objectsMax = objectsMaxDefault, gatherMs = gatherMsDefault }: FollowFoldersOptions,
): AsyncGenerator<FollowedFoldersRound<Value>, void, void> {
  const follower = new FolderFollower(zk, folders, { clock, objectsMax });
  return readNodesOnChange(zk, (wake) => follower.readRound(wake), {
    signal,
    clock,
    pause: async (event, tookMs) => {
      const restMs = Math.max(follower.isFull ? 0 : gatherMs - tookMs, restMsAfterNodeRead(tookMs));
      await sleep(clock, restMs, signal).catch(() => {});
      if (!follower.hasUnread && !signal.aborted) await resultInTimeOrNull(clock, sweepEveryMs, event.wait());
    },
  });
}

interface FollowedObject {
  readonly name: string;
  /** The function for all watches of the object. There is only one, because the client keeps a set of functions. */
  readonly watch: Watcher;
  /** Nodes of the object that were read; null if none are kept. */
  reads: NodeReadCache | null;
}

class FolderObjects<Value> {
  readonly folder: FollowedObjectFolder<Value>;
  /** The objects, by the name of their node. */
  readonly objects = new Map<string, FollowedObject>();
  readonly unread = new Set<FollowedObject>();
  isListUnread = true;
  isWatched = false;
  omitted = 0;

  constructor(folder: FollowedObjectFolder<Value>) {
    this.folder = folder;
  }
}

function markWhole<Value>({ unread }: FolderObjects<Value>, object: FollowedObject): void {
  object.reads?.forget();
  unread.add(object);
}

class FolderFollower<Value> {
  readonly #zk: ZooKeeper;
  readonly #batch: NodeReadBatch;
  readonly #clock: Clock;
  readonly #objectsMax: number;
  readonly #folders: readonly FolderObjects<Value>[];
  #connections = 0;
  /** True if the folders have recursive watches. */
  #isCovered = false;
  #isRefused = false;
  #isFull = false;
  #wake = () => {};
  #nextSweepMs: number;
  #sweep: FollowedObject[] = [];
  /** Changes that were read and not returned yet, including changes from rounds that failed. */
  #changes: FollowedObjectChange<Value>[] = [];

  constructor(
    zk: ZooKeeper,
    folders: readonly FollowedObjectFolder<Value>[],
    { clock, objectsMax }: { readonly clock: Clock; readonly objectsMax: number },
  ) {
    this.#zk = zk;
    this.#batch = new NodeReadBatch(zk, clock);
    this.#clock = clock;
    this.#objectsMax = objectsMax;
    this.#folders = folders.map((folder) => new FolderObjects(folder));
    this.#nextSweepMs = clock.now() + sweepEveryMs;
  }

  get hasUnread(): boolean {
    return this.#folders.some(({ isListUnread, unread }) => isListUnread || unread.size > 0);
  }

  /** True if the last round had no room for all unread objects. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Reads unread folders and objects. Rejects if a request fails; the next round reads what is still unread. */
  async readRound(wake: () => void): Promise<FollowedFoldersRound<Value>> {
    this.#wake = wake;
    await this.#coverAfterReconnect();
    this.#markForSweep();
    for (const one of this.#folders) if (one.isListUnread) await this.#readList(one);
    const wanted = this.#folders.reduce((sum, { unread }) => sum + unread.size, 0);
    this.#isFull = wanted > roundMax;
    let room = roundMax;
    for (const one of this.#folders) {
      const read = [...one.unread].slice(0, room);
      room -= read.length;
      await this.#readObjects(one, read);
    }
    const changes = this.#changes;
    this.#changes = [];
    const sum = (count: (one: FolderObjects<Value>) => number) =>
      this.#folders.reduce((total, one) => total + count(one), 0);
    return { changes, unread: sum(({ unread }) => unread.size), omitted: sum(({ omitted }) => omitted) };
  }

  /**
   * Sets new recursive watches and reads everything again after a reconnect. Recursive watches end with a connection,
   * and a watch that the client itself restores may miss changes.
   */
  async #coverAfterReconnect(): Promise<void> {
    const { connections } = this.#zk.session;
    if (connections === this.#connections) return;
    const isCovered = await this.#cover();
    const isOther = isCovered !== this.#isCovered;
    this.#isCovered = isCovered;
    this.#batch.join(isCovered);
    this.#connections = connections;
    for (const one of this.#folders) {
      one.isListUnread = true;
      for (const object of one.objects.values()) {
        if (isOther) object.reads = null;
        markWhole(one, object);
      }
    }
  }

  /** Sets recursive watches. Returns false if the servers do not support them. */
  async #cover(): Promise<boolean> {
    if (this.#isRefused || this.#zk.addRecursiveWatch === undefined) return false;
    try {
      for (const one of this.#folders) {
        await this.#zk.addRecursiveWatch(one.folder.path, (event) => this.#report(one, event));
      }
      return true;
    } catch (thrown) {
      if (!isUnknownOperationError(thrown)) throw thrown;
      this.#isRefused = true;
      return false;
    }
  }

  /** Handles an event at the folder or at a node below it. */
  #report(one: FolderObjects<Value>, event: WatchEvent): void {
    const { path } = one.folder;
    const end = event.path.indexOf("/", path.length + 1);
    const object = one.objects.get(event.path.slice(path.length + 1, end < 0 ? undefined : end));
    if (end < 0 && event.type !== "dataChanged") one.isListUnread = true;
    else if (object === undefined) return; // the list is unread, or it has too many objects
    if (object !== undefined) {
      object.reads?.report(event);
      one.unread.add(object);
    }
    this.#wake();
  }

  #markForSweep(): void {
    if (this.#clock.now() < this.#nextSweepMs) return;
    this.#nextSweepMs = this.#clock.now() + sweepEveryMs;
    if (this.#sweep.length === 0) {
      for (const one of this.#folders) one.isListUnread = true;
      this.#sweep = this.#folders.flatMap(({ objects }) => [...objects.values()]);
    }
    const all = this.#folders.reduce((sum, { objects }) => sum + objects.size, 0);
    const wholeMs = this.#isCovered ? sweepMs.recursive : sweepMs.oneShot;
    const part = new Set(this.#sweep.splice(0, Math.ceil(all * sweepEveryMs / wholeMs)));
    for (const one of this.#folders) {
      for (const object of one.objects.values()) if (part.has(object)) markWhole(one, object);
    }
  }

  async #readList(one: FolderObjects<Value>): Promise<void> {
    const { folder, objects, unread } = one;
    one.isListUnread = false;
    let names: readonly string[];
    try {
      names = await this.#childrenOf(one);
    } catch (thrown) {
      one.isListUnread = true;
      throw thrown;
    }
    const listed = new Set(names);
    for (const [node, object] of objects) {
      if (listed.has(node)) continue;
      unread.delete(object);
      objects.delete(node);
      this.#changes.push({ folder: folder.path, name: object.name, value: null });
    }
    const added = names.filter((node) => !objects.has(node)).slice(0, Math.max(0, this.#objectsMax - objects.size));
    for (const node of added) {
      const object: FollowedObject = {
        name: decodeLockName(node),
        watch: () => {
          if (objects.get(node) !== object) return;
          unread.add(object);
          this.#wake();
        },
        reads: null,
      };
      objects.set(node, object);
      unread.add(object);
    }
    one.omitted = names.length - objects.size;
  }

  /**
   * Returns the names of the folder's objects. Sets a watch on the folder or, if it does not exist, on its creation;
   * not if a recursive watch covers the folder.
   */
  async #childrenOf(one: FolderObjects<Value>): Promise<readonly string[]> {
    const { path } = one.folder;
    const watch = () => {
      one.isWatched = false;
      one.isListUnread = true;
      this.#wake();
    };
    const options = one.isWatched || this.#isCovered ? {} : { watch };
    for (;;) {
      const found = await hiddenIfNoAuth(nullIfNoNode(this.#zk.getChildren(path, options)));
      if (found === "hidden") return [];
      if (found !== null) {
        one.isWatched = !this.#isCovered;
        return found.children;
      }
      const created = await this.#zk.exists(path, options);
      one.isWatched = !this.#isCovered;
      if (created === null) return [];
      one.isWatched = false; // the folder was just created; the watch above is for its data
    }
  }

  async #readObjects(
    { folder, unread }: FolderObjects<Value>,
    wanted: readonly FollowedObject[],
  ): Promise<void> {
    const covered = this.#isCovered ? withoutWatches(this.#zk, folder.path) : this.#zk;
    await mapInBatches(wanted, batchSize, async (object) => {
      const { name } = object;
      unread.delete(object);
      try {
        const client = folder.keepsReads === true ? (object.reads ??= this.#readsOf(object)).client : covered;
        const value = await hiddenIfNoAuth(nullIfNoNode(folder.read(client, name, object.watch)));
        this.#changes.push({ folder: folder.path, name, value: value === "hidden" ? null : value });
      } catch (thrown) {
        object.reads?.forget();
        unread.add(object);
        throw thrown;
      }
    });
  }

  #readsOf({ watch }: FollowedObject): NodeReadCache {
    const options = this.#isCovered ? { isReported: true } : { watchesData: false };
    return new NodeReadCache(this.#batch.client, watch, options);
  }
}

/** Returns a client that sets no watches on the nodes below `path`; a recursive watch reports their changes. */
function withoutWatches(zk: ZooKeeper, path: string): ZooKeeper {
  const optionsOf = (node: string, { watch, ...others }: NodeReadOptions = {}): NodeReadOptions =>
    watch === undefined || node.startsWith(`${path}/`) ? others : { ...others, watch };
  return replaceZooKeeperCalls(zk, {
    exists: (node, options) => zk.exists(node, optionsOf(node, options)),
    getData: (node, options) => zk.getData(node, optionsOf(node, options)),
    getChildren: (node, options) => zk.getChildren(node, optionsOf(node, options)),
  });
}

/**
 * Returns a client whose `getChildren` sets a watch on each node that it lists. Its `sync` does nothing, because the
 * watch reports later changes.
 */
export function watchChildListReads(zk: ZooKeeper, watch: (event: WatchEvent) => void): ZooKeeper {
  return replaceZooKeeperCalls(zk, {
    getChildren: (path, options) => zk.getChildren(path, { ...options, watch }),
    sync: () => Promise.resolve(),
  });
}

/** How long a read waits for other reads to join, in milliseconds. */
const gateMs = 10;
const joinedMax = 100;

interface WaitingRead extends Pick<PromiseWithResolvers<NodeData>, "resolve" | "reject"> {
  readonly path: string;
}

/**
 * Sends the reads of a short time together, so that requests and responses share packets. After `join(true)`, one
 * request reads several nodes.
 */
export class NodeReadBatch {
  /** A client whose `getData` and `getChildren` wait a moment for other reads to join. */
  readonly client: ZooKeeper;
  readonly #zk: ZooKeeper;
  readonly #clock: Clock;
  #opening: Promise<void> | null = null;
  #isJoining = false;
  #waiting: WaitingRead[] = [];
  /**
   * The number of nodes that one request reads. A keeper closes the connection if a response is too long. After a lost
   * connection, a request therefore reads one node, and each later request reads one more.
   */
  #size = joinedMax;

  constructor(zk: ZooKeeper, clock: Clock) {
    this.#zk = zk;
    this.#clock = clock;
    const reads: Partial<ZooKeeper> = {
      getData: (path, options) =>
        this.#isJoining && options?.watch === undefined
          ? this.#join(path)
          : this.#pass().then(() => zk.getData(path, options)),
      getChildren: (path, options) => this.#pass().then(() => zk.getChildren(path, options)),
    };
    this.client = replaceZooKeeperCalls(zk, reads);
  }

  join(isKnown: boolean): void {
    this.#isJoining = isKnown && this.#zk.getDataOfAll !== undefined;
  }

  #pass(): Promise<void> {
    return this.#opening ??= sleep(this.#clock, gateMs).finally(() => this.#opening = null);
  }

  #join(path: string): Promise<NodeData> {
    const { promise, resolve, reject } = Promise.withResolvers<NodeData>();
    if (this.#waiting.length === 0) {
      void this.#pass().then(() => {
        const waiting = this.#waiting.splice(0);
        while (waiting.length > 0) void this.#send(waiting.splice(0, this.#size));
        this.#size = Math.min(joinedMax, this.#size + 1);
      });
    }
    this.#waiting.push({ path, resolve, reject });
    return promise;
  }

  async #send(reads: readonly WaitingRead[]): Promise<void> {
    try {
      const results = await this.#zk.getDataOfAll?.(reads.map(({ path }) => path)) ?? [];
      for (const [index, { resolve, reject }] of reads.entries()) {
        const result = results[index];
        if (result === undefined || result instanceof ZooKeeperError) reject(result);
        else resolve(result);
      }
    } catch (thrown) {
      if (isTransientFailure(thrown)) this.#size = 1;
      for (const { reject } of reads) reject(thrown);
    }
  }
}

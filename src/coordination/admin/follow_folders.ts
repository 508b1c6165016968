/** Follows all objects in some folders: reads an object again after a change of it, and all of them from time to time. */
import { type Clock, systemClock } from "../../support/clock.ts";
import { resultWithin, sleep } from "../../support/deadline.ts";
import type { WatchEvent, ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { decodeLockName } from "../lock/lock_path.ts";
import { readAgain } from "../read_again.ts";
import { hiddenIfNoAuth, mapInBatches, nullIfNoNode } from "../request_errors.ts";
import { restMsAfter } from "./follow_reads.ts";

export interface FollowedFolder<Value> {
  readonly path: string;
  /**
   * Reads one object; null: there is nothing to show. `watch` is for existing nodes only: a watch on a missing node of a deleted
   * object would never end. It is the same function as long as the object is followed. `isWhole` false: the object was read before, and
   * only its watches have reported a change.
   */
  readonly read: (
    zk: ZooKeeper,
    name: string,
    watch: (event: WatchEvent) => void,
    isWhole: boolean,
  ) => Promise<Value | null>;
}

export interface FolderChange<Value> {
  /** Path of the folder. */
  readonly folder: string;
  readonly name: string;
  /** Null: there is nothing to show, or it was deleted. */
  readonly value: Value | null;
}

/** Result of one round of reading. */
export interface FolderRound<Value> {
  readonly changes: readonly FolderChange<Value>[];
  /** Number of objects that are still to be read. */
  readonly unread: number;
  /** Number of objects that are not followed because a folder has too many. */
  readonly omitted: number;
}

interface FollowFoldersOptions {
  /** Ends the iteration. */
  readonly signal: AbortSignal;
  readonly clock?: Clock;
  /** Maximum number of objects of a folder. */
  readonly objectsMax?: number;
  /** Milliseconds from a change to its reading: changes that come together are read together. */
  readonly gatherMs?: number;
}

/** Number of objects that are read in one round, and at the same time. */
const roundMax = 200;
const batchSize = 50;
const objectsMaxDefault = 10_000;
const gatherMsDefault = 500;
/** Every object is read again within this time in case a watch was lost, in equal parts. Milliseconds. */
const sweepMs = 120_000;
const sweepEveryMs = 5000;

/** Yields what has changed after each round. Ends with the signal; throws when the session ends, and a refusal of the server. */
export function followFolders<Value>(
  zk: ZooKeeper,
  folders: readonly FollowedFolder<Value>[],
  { signal, clock = systemClock(), objectsMax = objectsMaxDefault, gatherMs = gatherMsDefault }: FollowFoldersOptions,
): AsyncGenerator<FolderRound<Value>, void, void> {
  const follower = new FolderFollower(zk, folders, { clock, objectsMax });
  return readAgain(zk, (wake) => follower.readRound(wake), {
    signal,
    clock,
    pause: async (event, tookMs) => {
      if (!follower.hasUnread) await resultWithin(clock, sweepEveryMs, event.wait());
      await sleep(clock, Math.max(follower.hasUnread ? 0 : gatherMs, restMsAfter(tookMs)), signal).catch(() => {});
    },
  });
}

interface FollowedObject {
  readonly name: string;
  /** The same function for every read: the client keeps a set of watchers. */
  readonly watch: (event: WatchEvent) => void;
  /** False: it was read, and only watches have reported a change since. */
  isWholeUnread: boolean;
}

class FolderObjects<Value> {
  readonly folder: FollowedFolder<Value>;
  readonly objects = new Map<string, FollowedObject>();
  readonly unread = new Set<FollowedObject>();
  isListUnread = true;
  isWatched = false;
  omitted = 0;

  constructor(folder: FollowedFolder<Value>) {
    this.folder = folder;
  }
}

function markWhole<Value>({ unread }: FolderObjects<Value>, object: FollowedObject): void {
  object.isWholeUnread = true;
  unread.add(object);
}

class FolderFollower<Value> {
  readonly #zk: ZooKeeper;
  readonly #clock: Clock;
  readonly #objectsMax: number;
  readonly #folders: readonly FolderObjects<Value>[];
  #connections = 0;
  #wake = () => {};
  #nextSweepMs: number;
  #sweep: FollowedObject[] = [];
  /** Changes that were read, of rounds that failed, too. */
  #changes: FolderChange<Value>[] = [];

  constructor(
    zk: ZooKeeper,
    folders: readonly FollowedFolder<Value>[],
    { clock, objectsMax }: { readonly clock: Clock; readonly objectsMax: number },
  ) {
    this.#zk = zk;
    this.#clock = clock;
    this.#objectsMax = objectsMax;
    this.#folders = folders.map((folder) => new FolderObjects(folder));
    this.#nextSweepMs = clock.now() + sweepEveryMs;
  }

  get hasUnread(): boolean {
    return this.#folders.some(({ isListUnread, unread }) => isListUnread || unread.size > 0);
  }

  /** Rejects with the failure of a request; what was not read is read in the next round. */
  async readRound(wake: () => void): Promise<FolderRound<Value>> {
    this.#wake = wake;
    this.#markAfterReconnect();
    this.#markForSweep();
    for (const one of this.#folders) if (one.isListUnread) await this.#readList(one);
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

  /** A watch that the client has set again after a reconnect is not reliable. */
  #markAfterReconnect(): void {
    const { connections } = this.#zk.session;
    if (connections === this.#connections) return;
    this.#connections = connections;
    for (const one of this.#folders) {
      one.isListUnread = true;
      for (const object of one.objects.values()) markWhole(one, object);
    }
  }

  #markForSweep(): void {
    if (this.#clock.now() < this.#nextSweepMs) return;
    this.#nextSweepMs = this.#clock.now() + sweepEveryMs;
    if (this.#sweep.length === 0) {
      for (const one of this.#folders) one.isListUnread = true;
      this.#sweep = this.#folders.flatMap(({ objects }) => [...objects.values()]);
    }
    const all = this.#folders.reduce((sum, { objects }) => sum + objects.size, 0);
    const part = new Set(this.#sweep.splice(0, Math.ceil(all * sweepEveryMs / sweepMs)));
    for (const one of this.#folders) {
      for (const object of part) if (one.objects.get(object.name) === object) markWhole(one, object);
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
    const listed = names.map(decodeLockName);
    const known = new Set(listed);
    const gone = [...objects.keys()].filter((name) => !known.has(name));
    for (const name of gone) {
      const object = objects.get(name);
      if (object !== undefined) unread.delete(object);
      objects.delete(name);
    }
    const added = listed.filter((name) => !objects.has(name)).slice(0, Math.max(0, this.#objectsMax - objects.size));
    for (const name of added) {
      const object: FollowedObject = {
        name,
        watch: () => {
          if (objects.get(name) !== object) return;
          unread.add(object);
          this.#wake();
        },
        isWholeUnread: true,
      };
      objects.set(name, object);
      unread.add(object);
    }
    one.omitted = listed.length - objects.size;
    this.#changes.push(...gone.map((name) => ({ folder: folder.path, name, value: null })));
  }

  /** Watches the folder, or its creation. */
  async #childrenOf(one: FolderObjects<Value>): Promise<readonly string[]> {
    const { path } = one.folder;
    const watch = () => {
      one.isWatched = false;
      one.isListUnread = true;
      this.#wake();
    };
    const options = one.isWatched ? {} : { watch };
    for (;;) {
      const found = await hiddenIfNoAuth(nullIfNoNode(this.#zk.getChildren(path, options)));
      if (found === "hidden") return [];
      if (found !== null) {
        one.isWatched = true;
        return found.children;
      }
      const created = await this.#zk.exists(path, options);
      one.isWatched = true;
      if (created === null) return [];
      one.isWatched = false; // created meanwhile: the watch above is for its data
    }
  }

  async #readObjects(
    { folder, objects, unread }: FolderObjects<Value>,
    wanted: readonly FollowedObject[],
  ): Promise<void> {
    await mapInBatches(wanted, batchSize, async (object) => {
      const { name } = object;
      unread.delete(object);
      const { isWholeUnread } = object;
      object.isWholeUnread = false;
      try {
        const value = await hiddenIfNoAuth(nullIfNoNode(folder.read(this.#zk, name, object.watch, isWholeUnread)));
        if (!objects.has(name)) return;
        this.#changes.push({ folder: folder.path, name, value: value === "hidden" ? null : value });
      } catch (thrown) {
        object.isWholeUnread = true;
        unread.add(object);
        throw thrown;
      }
    });
  }
}

/**
 * Returns a client whose `getChildren` watches existing nodes, and whose `sync` does nothing: a change that its server has not seen yet
 * is reported by a watch later.
 */
export function watchLists(zk: ZooKeeper, watch: (event: WatchEvent) => void): ZooKeeper {
  const reads: Partial<ZooKeeper> = {
    getChildren: (path, options) => zk.getChildren(path, { ...options, watch }),
    sync: () => Promise.resolve(),
  };
  return new Proxy(zk, {
    get(client, name: keyof ZooKeeper) {
      const value: unknown = reads[name] ?? client[name];
      return typeof value === "function" ? value.bind(client) : value;
    },
  });
}

/**
 * The watches of all connections. As in ZooKeeper, one table is for changes of a node, the other for changes of its
 * children. A watch for both is in both tables. `Watcher` is the connection that receives the events. Source:
 * WatchManager, DataTree.
 */
import { watchEventType } from "../../../protocols/zookeeper/jute/zookeeper_operations.ts";
export const watchMode = { once: 1, persistent: 2, recursive: 4 } as const;
const anyMode = 7;

/** The modes of one watcher at one path, as bits of `watchMode`. */
type WatchModes = number;

/** An event at a node, and a function that tells which watchers may see it. */
interface NodeEvent<Watcher> {
  readonly type: number;
  readonly path: string;
  readonly mayLearn: (watcher: Watcher) => boolean;
}

class PathWatches<Watcher> {
  readonly #byPath = new Map<string, Map<Watcher, WatchModes>>();
  readonly #byWatcher = new Map<Watcher, Set<string>>();
  #recursiveCount = 0;
  count = 0;

  get pathCount(): number {
    return this.#byPath.size;
  }

  get watchers(): Iterable<Watcher> {
    return this.#byWatcher.keys();
  }

  countOf(watcher: Watcher): number {
    return this.#byWatcher.get(watcher)?.size ?? 0;
  }

  /** Returns true if the watcher has a watch of one of these modes on the path. */
  has(path: string, watcher: Watcher, modes: WatchModes = anyMode): boolean {
    return ((this.#byPath.get(path)?.get(watcher) ?? 0) & modes) !== 0;
  }

  add(path: string, watcher: Watcher, mode: WatchModes): void {
    let watchers = this.#byPath.get(path);
    if (watchers === undefined) this.#byPath.set(path, watchers = new Map());
    this.#set(path, watchers, watcher, (watchers.get(watcher) ?? 0) | mode);
    const paths = this.#byWatcher.get(watcher);
    if (paths === undefined) this.#byWatcher.set(watcher, new Set([path]));
    else paths.add(path);
  }

  /** Removes the watches of these modes. Returns false if there was no such watch. */
  remove(path: string, watcher: Watcher, modes: WatchModes = anyMode): boolean {
    const watchers = this.#byPath.get(path);
    const before = watchers?.get(watcher) ?? 0;
    if (watchers === undefined || (before & modes) === 0) return false;
    this.#set(path, watchers, watcher, before & ~modes);
    return true;
  }

  removeAll(watcher: Watcher): void {
    for (const path of [...this.#byWatcher.get(watcher) ?? []]) this.remove(path, watcher);
  }

  /**
   * Adds the watchers to notify to `notified`, and removes their one-shot watches. A watcher that may not see the event
   * keeps its one-shot watch: checkWatches would reveal the removal, and with it the event.
   */
  fire({ type, path, mayLearn }: NodeEvent<Watcher>, notified: Set<Watcher>): void {
    const watchers = this.#byPath.get(path);
    if (watchers !== undefined) {
      for (const [watcher, modes] of [...watchers]) {
        if (!mayLearn(watcher)) continue;
        const recursiveOnly = modes === watchMode.recursive;
        if (!(recursiveOnly && type === watchEventType.childrenChanged)) notified.add(watcher);
        this.#set(path, watchers, watcher, modes & ~watchMode.once);
      }
    }
    if (this.#recursiveCount === 0 || type === watchEventType.childrenChanged) return;
    for (let above = path; above !== "/";) {
      above = above.slice(0, above.lastIndexOf("/")) || "/";
      for (const [watcher, modes] of this.#byPath.get(above) ?? []) {
        if (modes & watchMode.recursive && mayLearn(watcher)) notified.add(watcher);
      }
    }
  }

  #set(path: string, watchers: Map<Watcher, WatchModes>, watcher: Watcher, modes: WatchModes): void {
    const before = watchers.get(watcher) ?? 0;
    this.#recursiveCount += Number((modes & watchMode.recursive) !== 0) - Number((before & watchMode.recursive) !== 0);
    this.count += Number(modes !== 0) - Number(before !== 0);
    if (modes !== 0) {
      watchers.set(watcher, modes);
      return;
    }
    watchers.delete(watcher);
    if (watchers.size === 0) this.#byPath.delete(path);
    const paths = this.#byWatcher.get(watcher);
    paths?.delete(path);
    if (paths?.size === 0) this.#byWatcher.delete(watcher);
  }
}

export class WatchTable<Watcher> {
  readonly data = new PathWatches<Watcher>();
  readonly children = new PathWatches<Watcher>();

  get count(): number {
    return this.data.count + this.children.count;
  }

  countOf(watcher: Watcher): number {
    return this.data.countOf(watcher) + this.children.countOf(watcher);
  }

  addPersistent(path: string, watcher: Watcher, mode: WatchModes): void {
    this.data.add(path, watcher, mode);
    this.children.add(path, watcher, mode);
  }

  removeAll(watcher: Watcher): void {
    this.data.removeAll(watcher);
    this.children.removeAll(watcher);
  }

  /**
   * Returns the watchers to notify, each only once. Watchers of a node's children are also notified of the node's
   * deletion.
   */
  fire(event: NodeEvent<Watcher>): Set<Watcher> {
    const notified = new Set<Watcher>();
    const { type } = event;
    if (type !== watchEventType.childrenChanged) this.data.fire(event, notified);
    if (type === watchEventType.deleted || type === watchEventType.childrenChanged) this.children.fire(event, notified);
    return notified;
  }
}

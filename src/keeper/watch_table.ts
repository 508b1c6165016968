/**
 * Who wants to hear of what. Two tables, as in the real server: changes of a node, and changes of its children; a watch
 * for both stands in both. `Watcher` is whatever the owner tells the event to: here, a connection.
 * Source: WatchManager, DataTree.
 */
import { eventType } from "../wire/jute/operations.ts";
import type { Trigger } from "./transaction.ts";

export const watchMode = { once: 1, persistent: 2, recursive: 4 } as const;

/** Bits of watchMode: what one watcher has on one path. */
type Modes = number;

class Watches<Watcher> {
  readonly #byPath = new Map<string, Map<Watcher, Modes>>();
  readonly #byWatcher = new Map<Watcher, Set<string>>();
  #recursiveCount = 0;
  #count = 0;

  get count(): number {
    return this.#count;
  }

  get pathCount(): number {
    return this.#byPath.size;
  }

  get watchers(): Iterable<Watcher> {
    return this.#byWatcher.keys();
  }

  countOf(watcher: Watcher): number {
    return this.#byWatcher.get(watcher)?.size ?? 0;
  }

  has(path: string, watcher: Watcher): boolean {
    return this.#byPath.get(path)?.has(watcher) ?? false;
  }

  add(path: string, watcher: Watcher, mode: Modes): void {
    let watchers = this.#byPath.get(path);
    if (watchers === undefined) this.#byPath.set(path, watchers = new Map());
    this.#set(path, watchers, watcher, (watchers.get(watcher) ?? 0) | mode);
    const paths = this.#byWatcher.get(watcher);
    if (paths === undefined) this.#byWatcher.set(watcher, new Set([path]));
    else paths.add(path);
  }

  remove(path: string, watcher: Watcher): boolean {
    const watchers = this.#byPath.get(path);
    if (!watchers?.has(watcher)) return false;
    this.#set(path, watchers, watcher, 0);
    return true;
  }

  removeAll(watcher: Watcher): void {
    for (const path of [...this.#byWatcher.get(watcher) ?? []]) this.remove(path, watcher);
  }

  /** Adds to `told` who is to hear of it, and takes the one-shot watches off. */
  fire(type: number, path: string, told: Set<Watcher>): void {
    const watchers = this.#byPath.get(path);
    if (watchers !== undefined) {
      for (const [watcher, modes] of [...watchers]) {
        const recursiveOnly = modes === watchMode.recursive;
        if (!(recursiveOnly && type === eventType.childrenChanged)) told.add(watcher);
        this.#set(path, watchers, watcher, modes & ~watchMode.once);
      }
    }
    if (this.#recursiveCount === 0 || type === eventType.childrenChanged) return;
    for (let above = path; above !== "/";) {
      above = above.slice(0, above.lastIndexOf("/")) || "/";
      for (const [watcher, modes] of this.#byPath.get(above) ?? []) {
        if (modes & watchMode.recursive) told.add(watcher);
      }
    }
  }

  #set(path: string, watchers: Map<Watcher, Modes>, watcher: Watcher, modes: Modes): void {
    const before = watchers.get(watcher) ?? 0;
    this.#recursiveCount += Number((modes & watchMode.recursive) !== 0) - Number((before & watchMode.recursive) !== 0);
    this.#count += Number(modes !== 0) - Number(before !== 0);
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
  readonly data = new Watches<Watcher>();
  readonly children = new Watches<Watcher>();

  get count(): number {
    return this.data.count + this.children.count;
  }

  /** How many one watcher has. */
  countOf(watcher: Watcher): number {
    return this.data.countOf(watcher) + this.children.countOf(watcher);
  }

  addPersistent(path: string, watcher: Watcher, mode: Modes): void {
    this.data.add(path, watcher, mode);
    this.children.add(path, watcher, mode);
  }

  removeAll(watcher: Watcher): void {
    this.data.removeAll(watcher);
    this.children.removeAll(watcher);
  }

  /** Whom to tell, each once. A node's end is told to those who watch its children, too. */
  fire(trigger: Trigger): Set<Watcher> {
    const told = new Set<Watcher>();
    const { type, path } = trigger;
    if (type !== eventType.childrenChanged) this.data.fire(type, path, told);
    if (type === eventType.deleted || type === eventType.childrenChanged) this.children.fire(type, path, told);
    return told;
  }
}

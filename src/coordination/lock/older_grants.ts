/** Follows the grants that are older than the own one: as long as one of them exists, it holds the lock. */
import type { Stat, WatchEvent, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { nullIfNoNode } from "../nodes/node_requests.ts";

export interface GrantNames {
  /** Path of the parent node of all grants. */
  readonly folder: string;
  readonly own: string;
  /** Grants that existed when the own one was requested; they may be gone. */
  readonly others: readonly string[];
}

export class OlderGrants {
  readonly #onChange: () => void;
  readonly #older = new Set<string>();
  readonly #deleted = new Set<string>();
  #isStale = false;
  #own: Stat | null = null;

  private constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /**
   * Reads all grants and watches them. `onChange` is called when no older one is left, and when they must be read
   * again.
   *
   * The own grant is read last. It is withdrawn only while an older one exists: an own grant that exists after the
   * older ones were gone can no longer be withdrawn. The order of the events shows the same later: a server sends them
   * in the order of the changes.
   */
  static async read(zk: ZooKeeper, { folder, own, others }: GrantNames, onChange: () => void): Promise<OlderGrants> {
    const grants = new OlderGrants(onChange);
    const found = await Promise.all([
      ...others.map((name) => {
        return nullIfNoNode(zk.getData(`${folder}/${name}`, { watch: (event) => grants.#onOther(name, event) }));
      }),
      nullIfNoNode(zk.getData(`${folder}/${own}`, { watch: () => grants.#setStale() })),
    ]);
    const ownStat = grants.#own = found.pop()?.stat ?? null;
    for (const [at, other] of found.entries()) {
      const name = others[at] ?? "";
      const isOlder = other !== null && ownStat !== null && other.stat.czxid < ownStat.czxid;
      if (isOlder && !grants.#deleted.has(name)) grants.#older.add(name);
    }
    return grants;
  }

  /** Stat of the own grant; null when it did not exist. */
  get own(): Stat | null {
    return this.#own;
  }

  /** True when no older grant is left, and nothing else has changed since they were read. */
  get isOldest(): boolean {
    return this.#own !== null && this.#older.size === 0 && !this.#isStale;
  }

  #onOther(name: string, { type }: WatchEvent): void {
    if (type !== "deleted") return this.#setStale(); // its data changed: the watch is used up
    this.#deleted.add(name);
    if (this.#older.delete(name) && this.#older.size === 0) this.#onChange();
  }

  #setStale(): void {
    this.#isStale = true;
    this.#onChange();
  }
}

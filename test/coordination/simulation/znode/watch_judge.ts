/**
 * The watches of one session: each fires at most once, only after a change, and before any response of the session
 * shows that change.
 */
import { isServerRefusal } from "../../../../src/coordination/nodes/node_requests.ts";
import type { Watcher, ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import type { NodeOracle } from "./node_oracle.ts";

const looks = {
  data: async (zk: ZooKeeper, path: string, watch?: Watcher) => {
    try {
      return (await zk.getData(path, watching(watch))).stat.mzxid;
    } catch (error) {
      if (isServerRefusal(error, "NONODE")) return null;
      throw error;
    }
  },
  existence: async (zk: ZooKeeper, path: string, watch?: Watcher) =>
    (await zk.exists(path, watching(watch)))?.mzxid ?? null,
  children: async (zk: ZooKeeper, path: string, watch?: Watcher) =>
    (await zk.getChildren(path, watching(watch))).stat.pzxid,
};
const watching = (watch: Watcher | undefined) => (watch === undefined ? {} : { watch });

export type LookKind = keyof typeof looks;

/** A watch that is set. */
interface SetWatch {
  /** What the response that set it has shown: the zxid of the last change; null for a missing node. */
  readonly shown: bigint | null;
  readonly connections: number;
}

export class WatchJudge {
  readonly #name: string;
  readonly #zk: ZooKeeper;
  readonly #oracle: NodeOracle;
  /** By subject: reads of data and of existence set watches on the same changes. */
  readonly #watches = new Map<string, SetWatch>();

  constructor(name: string, zk: ZooKeeper, oracle: NodeOracle) {
    this.#name = name;
    this.#zk = zk;
    this.#oracle = oracle;
  }

  /** Reads a node, and sets a watch on it if it has none and `sets` says so. Rejects as a read does. */
  async look(kind: LookKind, path: string, { sets }: { readonly sets: boolean }): Promise<void> {
    const subject = `${kind === "children" ? "children" : "data"} ${path}`;
    if (!sets || this.#watches.has(subject)) return this.#compare(subject, await looks[kind](this.#zk, path));
    const before = this.#changesOf(subject);
    let firedType: string | null = null;
    const watcher: Watcher = ({ type }) => {
      this.#oracle.world.count("mark watch fired");
      const set = this.#watches.get(subject);
      this.#watches.delete(subject);
      if (firedType !== null) this.#fail("watch fired twice", subject, `${firedType}, then ${type}`);
      firedType = type;
      if (this.#changesOf(subject) === before) this.#fail("watch without a change", subject, type);
      if (set !== undefined && set.connections !== this.#zk.session.connections) {
        this.#oracle.world.count("mark watch fired after a reconnect");
      }
    };
    const { connections } = this.#zk.session;
    const shown = await looks[kind](this.#zk, path, watcher);
    // A read of the data of a missing node sets no watch. A watch may have fired before this continues.
    if (firedType === null && (kind !== "data" || shown !== null)) this.#watches.set(subject, { shown, connections });
  }

  /** Reads everything that is watched: a change that was not told is seen now. */
  async lookAtAll(): Promise<void> {
    for (const subject of [...this.#watches.keys()]) {
      const [kind, path = ""] = subject.split(" ");
      await this.look(kind === "children" ? "children" : "existence", path, { sets: false });
    }
  }

  #compare(subject: string, shown: bigint | null): void {
    const set = this.#watches.get(subject);
    if (set === undefined || set.shown === shown) return;
    this.#fail("change seen before its watch event", subject, `change ${shown}, after ${set.shown} was watched`);
  }

  #changesOf(subject: string): number {
    const [kind, path = ""] = subject.split(" ");
    return this.#oracle.changesOf(kind as "data" | "children", path);
  }

  #fail(kind: string, subject: string, what: string): void {
    this.#oracle.world.fail(kind, `${this.#name}, ${subject}: ${what}`);
  }
}

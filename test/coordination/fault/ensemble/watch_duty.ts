/** Thousands of one-shot watches of one session, and somebody who changes what they watch: each change is told once. */
import type { ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import {
  isServerRefusal,
  mapInBatches,
  retryOnConnectionLoss,
} from "../../../../src/coordination/nodes/node_requests.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { eventually } from "../../../support/eventually.ts";
import { shuffled } from "../../../support/random.ts";
import { judgeWatches, type Watched } from "./judge.ts";

const nothing = new Uint8Array(0);
export const watchedRoot = "/ensemble-watched";
/** Of the tree's nodes: long enough that all of them together take many batches. */
const padding = "w".repeat(60);
const batchSize = 500;
/** Without a quorum nothing is changed: how long the ensemble may take to have one again. */
const changeMsMax = 30_000;

const kinds = ["data", "exist", "child"] as const;

class WatchedNode {
  readonly kind: (typeof kinds)[number];
  readonly path: string;
  /** Whether there is what comes and goes: the node itself, or its child. */
  isThere = false;
  isArmed = false;
  expected: string | null = null;
  told: string[] = [];

  constructor(number: number) {
    this.kind = kinds[number % kinds.length] ?? "data";
    this.path = `${watchedRoot}/${this.kind}-${padding}-${number}`;
  }

  get watched(): Watched {
    return { path: this.path, expected: this.expected, told: this.told };
  }
}

export class WatchDuty {
  readonly #watcher: ZooKeeper;
  readonly #changer: ZooKeeper;
  readonly #nodes: readonly WatchedNode[];
  readonly #clock = systemClock();

  /** `changer` is another session than that of the `watcher`. */
  static async start(watcher: ZooKeeper, changer: ZooKeeper, count: number): Promise<WatchDuty> {
    const nodes = Array.from({ length: count }, (_, number) => new WatchedNode(number));
    await changer.create(watchedRoot, nothing);
    const standing = nodes.filter(({ kind }) => kind !== "exist");
    for (let at = 0; at < standing.length; at += batchSize) {
      await changer.multi(
        standing.slice(at, at + batchSize).map(({ path }) => {
          return { type: "create" as const, path, data: nothing, acl: null, flags: 0 };
        }),
      );
    }
    return new WatchDuty(watcher, changer, nodes);
  }

  private constructor(watcher: ZooKeeper, changer: ZooKeeper, nodes: readonly WatchedNode[]) {
    this.#watcher = watcher;
    this.#changer = changer;
    this.#nodes = nodes;
  }

  /** Watches everything that is not watched any more. */
  async arm(): Promise<void> {
    const watch = async (node: WatchedNode) => {
      const { path, kind } = node;
      const watch = ({ type }: { type: string }) => void node.told.push(type);
      Object.assign(node, { told: [], expected: null });
      await this.#ask<unknown>(() => {
        if (kind === "data") return this.#watcher.getData(path, { watch });
        return kind === "child" ? this.#watcher.getChildren(path, { watch }) : this.#watcher.exists(path, { watch });
      });
      node.isArmed = true;
    };
    // Behind a look at the leader's state: a watch on what was before would tell of what is known already.
    await this.#ask(() => this.#watcher.sync(watchedRoot));
    await mapInBatches(this.#nodes.filter(({ isArmed }) => !isArmed), batchSize, watch);
  }

  /** Nodes in an order of chance, none of them twice. */
  some(count: number, random: () => number): (() => Promise<void>)[] {
    return shuffled(this.#nodes, random).slice(0, count).map((node) => () => this.#change(node));
  }

  /**
   * Waits for all that has to be told, and for whatever else is on its way; says what is wrong, and is to be armed
   * again.
   */
  async settle(withinMs: number): Promise<string[]> {
    const silent = () => this.#nodes.filter(({ expected, told }) => expected !== null && told.length === 0).length;
    await eventually(() => silent() === 0, { withinMs }).catch(() => {});
    // Events come before the answers that were asked for behind them.
    await this.#ask(() => this.#watcher.sync(watchedRoot));
    await this.#ask(() => this.#watcher.exists(watchedRoot));
    for (const node of this.#nodes) if (node.told.length > 0) node.isArmed = false;
    return judgeWatches(this.#nodes.map(({ watched }) => watched));
  }

  /** What is watched by those with which something is wrong, since the last time they were armed. */
  get suspects(): string[] {
    return this.#nodes.filter(({ watched }) => judgeWatches([watched]).length > 0).map(({ path }) => path);
  }

  get changes(): number {
    return this.#nodes.filter(({ expected }) => expected !== null).length;
  }

  #ask<T>(ask: () => Promise<T>): Promise<T> {
    return retryOnConnectionLoss(this.#watcher, ask, { clock: this.#clock });
  }

  async #change(node: WatchedNode): Promise<void> {
    const { path, kind } = node;
    const target = kind === "child" ? `${path}/c` : path;
    const act = () => {
      if (kind === "data") return this.#changer.setData(path, nothing, -1);
      return node.isThere ? this.#changer.delete(target, -1) : this.#changer.create(target, nothing);
    };
    if (kind === "data") node.expected = "dataChanged";
    else if (kind === "child") node.expected = "childrenChanged";
    else node.expected = node.isThere ? "deleted" : "created";
    await eventually(async () => {
      try {
        await act();
      } catch (thrown) {
        // Done already, by a request whose answer was lost.
        if (!isServerRefusal(thrown, "NODEEXISTS", "NONODE")) throw thrown;
      }
      return true;
    }, { withinMs: changeMsMax, what: `${path} to be changed`, everyMs: 20 });
    if (kind !== "data") node.isThere = !node.isThere;
  }
}

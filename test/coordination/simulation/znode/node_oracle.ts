/** Knows how often each node was changed on the keeper's disk, and which sessions are there. */
import { parentNodePath } from "../../../../src/coordination/keeper/state/transaction.ts";
import type { ZNode } from "../../../../src/coordination/keeper/state/tree.ts";
import type { ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import type { StoredTree, TreeObserver } from "../../../world/stored_tree.ts";
import type { SimProcess } from "../../../world/sim_process.ts";
import type { SimWorld } from "../../../world/sim_world.ts";

/** A session that a client has, and has not begun to close. */
interface OpenSession {
  readonly process: SimProcess;
  readonly life: number;
  readonly zk: ZooKeeper;
  wasStored: boolean;
}

export class NodeOracle implements TreeObserver {
  readonly world: SimWorld;
  readonly #tree: StoredTree;
  readonly #changes = new Map<string, number>();
  readonly #open = new Set<OpenSession>();
  /** The highest sequence number that a client has been told, and all of them. */
  #lastNumber = -1;
  readonly #numbers = new Set<number>();

  constructor(world: SimWorld, tree: StoredTree) {
    this.world = world;
    this.#tree = tree;
    tree.observers.push(this);
  }

  /** A process that has a session now. */
  get worker(): SimProcess | undefined {
    for (const { process, life } of this.#open) if (process.life === life) return process;
    return undefined;
  }

  /**
   * Grows with each change of a node's data, or of the list of its children, on the disk. A node that comes and goes in
   * one commit is seen as a change of its parent only.
   */
  changesOf(kind: "data" | "children", path: string): number {
    const own = this.#changes.get(`${kind} ${path}`) ?? 0;
    return kind === "children" ? own : own + this.changesOf("children", parentNodePath(path) || "/");
  }

  /** Returns the function that ends the watch over this session: its client closes it. */
  sessionOpened(process: SimProcess, zk: ZooKeeper): () => void {
    const opened = { process, life: process.life, zk, wasStored: this.#tree.hasSession(zk.session.id) };
    this.#open.add(opened);
    return () => this.#open.delete(opened);
  }

  /**
   * Returns the check of the number that the server chooses: it must be new, and greater than all that were told before
   * the call.
   */
  sequenceCall(): (number: number) => void {
    const before = this.#lastNumber;
    return (number) => {
      this.world.count("mark sequence number");
      if (this.#numbers.has(number)) this.world.fail("sequence number twice", String(number));
      if (number <= before) this.world.fail("sequence number", `${number} after ${before}`);
      this.#numbers.add(number);
      this.#lastNumber = Math.max(this.#lastNumber, number);
    };
  }

  nodeChanges(before: ZNode | undefined, after: ZNode | undefined): void {
    const { path } = before ?? after ?? {};
    if (path === undefined) return; // came and went in this commit
    if (before?.mzxid !== after?.mzxid) this.#count("data", path);
    if (before?.pzxid !== after?.pzxid) this.#count("children", path);
  }

  committed(): void {
    for (const opened of this.#open) {
      const { process, life, zk } = opened;
      const isStored = this.#tree.hasSession(zk.session.id);
      opened.wasStored ||= isStored;
      if (process.life !== life) this.#open.delete(opened);
      if (isStored || !opened.wasStored || process.state !== "running") continue;
      this.#open.delete(opened);
      this.world.count("mark session expired");
      this.world.visit(process, () => this.#checkEnd(process, zk));
    }
  }

  /** The session has ended on the server: its client must know by its own clock that this may be. */
  #checkEnd({ name, clock }: SimProcess, { session }: ZooKeeper): void {
    clock.noticeSuspend();
    const leftMs = session.leaseEndMs() - clock.now();
    if (leftMs > 0) {
      this.world.fail("session ended early", `that of ${name}, ${leftMs.toFixed(0)} ms before the end of its lease`);
    }
  }

  #count(kind: "data" | "children", path: string): void {
    const subject = `${kind} ${path}`;
    this.#changes.set(subject, (this.#changes.get(subject) ?? 0) + 1);
  }
}

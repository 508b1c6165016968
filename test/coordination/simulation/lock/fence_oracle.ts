/**
 * Judges a store behind a fence, a node on the keeper's disk: each write is of a holder whose grant is there; the store
 * never goes back, and has what was acknowledged, nothing that was refused.
 */
import type { ZNode } from "../../../../src/coordination/keeper/state/tree.ts";
import type { StoredTree, TreeObserver } from "../../../world/stored_tree.ts";
import type { SimWorld } from "../../../world/sim_world.ts";

/** The writes of a holder are numbered from 1. */
export interface StoreWrite {
  readonly path: string;
  readonly token: bigint;
  readonly number: number;
}

const keyOf = ({ path, token, number }: StoreWrite): string => `${path} ${token} ${number}`;
export const formatWrite = ({ token, number }: StoreWrite): Uint8Array =>
  new TextEncoder().encode(`${token} ${number}`);

export class FenceOracle implements TreeObserver {
  readonly #world: SimWorld;
  readonly #last = new Map<string, StoreWrite>();
  readonly #written = new Set<string>();
  readonly #refused = new Set<string>();
  /**
   * The tokens of the grants that are there, also at some time in the present commit: changes of one commit have no
   * order here.
   */
  readonly #grants = new Set<bigint>();
  #endedGrants: bigint[] = [];
  #writes: StoreWrite[] = [];

  constructor(world: SimWorld, tree: StoredTree) {
    this.#world = world;
    tree.observers.push(this);
  }

  acknowledged(write: StoreWrite): void {
    this.#world.count("fenced writes");
    if (!this.#written.has(keyOf(write))) this.#world.fail("lost write", `${keyOf(write)} was acknowledged`);
  }

  refused(write: StoreWrite): void {
    this.#world.count("mark stale write refused");
    this.#refused.add(keyOf(write));
    if (this.#written.has(keyOf(write))) this.#world.fail("stale write", `${keyOf(write)} was refused, and is written`);
  }

  nodeChanges(before: ZNode | undefined, after: ZNode | undefined): void {
    const grant = before ?? after;
    if (grant?.path.includes("/h/") === true) {
      if (after === undefined) this.#endedGrants.push(grant.czxid);
      else this.#grants.add(grant.czxid);
    }
    if (after?.path.startsWith("/store-") !== true || after.data === null) return;
    const [token = "", number = ""] = new TextDecoder().decode(after.data).split(" ");
    const write = { path: after.path, token: BigInt(token), number: Number(number) };
    const last = this.#last.get(write.path);
    const isLater = last === undefined || write.token > last.token ||
      (write.token === last.token && write.number > last.number);
    if (!isLater) this.#world.fail("stale write", `${keyOf(write)} after ${keyOf(last)}`);
    if (this.#refused.has(keyOf(write))) this.#world.fail("stale write", `${keyOf(write)} was refused`);
    this.#writes.push(write);
    this.#last.set(write.path, write);
    this.#written.add(keyOf(write));
  }

  committed(): void {
    for (const write of this.#writes) {
      if (!this.#grants.has(write.token)) {
        this.#world.fail("stale write", `${keyOf(write)}, and no grant has this token`);
      }
    }
    for (const token of this.#endedGrants) this.#grants.delete(token);
    this.#writes = [];
    this.#endedGrants = [];
  }
}

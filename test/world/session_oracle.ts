/** Judges that the session of a client that has died ends in time: what it held is free for others then. */
import type { Fault } from "./fault_plan.ts";
import type { StoredTree, TreeObserver } from "./stored_tree.ts";
import type { SimProcess } from "./sim_process.ts";
import type { SimWorld } from "./sim_world.ts";

/**
 * The time beyond which a session is late: a part of its timeout, and milliseconds for delays of the network and of the
 * disk.
 */
const lateAfter = { timeouts: 1.4, moreMs: 1000 };

export interface SessionOracleOptions {
  readonly sessionTimeoutMs: number;
  readonly tickTimeMs: number;
  readonly flushMs: number;
  readonly slowCommitMs?: number;
  readonly faults: readonly Fault[];
}

export class SessionOracle implements TreeObserver {
  readonly #world: SimWorld;
  readonly #tree: StoredTree;
  readonly #options: SessionOracleOptions;
  /** Sessions of clients that have died, and when. */
  readonly #orphans = new Map<bigint, { readonly who: string; readonly diedAtMs: number }>();
  /** The process that ends sessions. */
  keeper: SimProcess | null = null;

  constructor(world: SimWorld, tree: StoredTree, options: SessionOracleOptions) {
    this.#world = world;
    this.#tree = tree;
    this.#options = options;
    tree.observers.push(this);
  }

  opened(process: SimProcess, id: bigint): void {
    process.whenDead(() => {
      if (this.#tree.hasSession(id)) this.#orphans.set(id, { who: process.name, diedAtMs: this.#world.nowMs });
    });
  }

  nodeChanges(): void {}

  committed(): void {
    for (const [id, { who, diedAtMs }] of this.#orphans) {
      if (this.#tree.hasSession(id)) continue;
      this.#orphans.delete(id);
      this.#world.count("mark session of a dead client ended");
      const { sessionTimeoutMs, tickTimeMs, slowCommitMs = 0 } = this.#options;
      const fromMs = Math.max(diedAtMs, this.#calmSinceMs());
      const tookMs = this.#world.nowMs - fromMs;
      // A session gets the time of the longest commit; its end waits for the commit that runs, and for its own.
      const commitsMs = 3.3 * slowCommitMs;
      if (tookMs <= lateAfter.timeouts * sessionTimeoutMs + lateAfter.moreMs + 2 * tickTimeMs + commitsMs) continue;
      this.#world.fail(
        "session ended late",
        `that of ${who}, which died at ${diedAtMs}, after ${tookMs} ms without faults`,
      );
    }
  }

  /**
   * Since when the keeper and the network have been without a fault, in true time. What a disk has begun to write takes
   * as long as a slow disk does; what a client has sent may arrive after a partition.
   */
  #calmSinceMs(): number {
    const { nowMs } = this.#world;
    const slow = this.#options.faults.filter((fault) => fault.kind === "disk slow");
    const isSlowAt = (atMs: number) => (fault: Fault & { forMs: number }) =>
      fault.at <= atMs && fault.at + fault.forMs >= atMs;
    let sinceMs = this.keeper?.runsSinceMs ?? 0;
    for (const fault of this.#options.faults) {
      const isOfNetwork = fault.kind === "cut" || fault.kind === "delay";
      if ((fault.target !== "keeper" && !isOfNetwork) || !("forMs" in fault) || fault.at > nowMs) continue;
      const endMs = fault.at + fault.forMs + (fault.kind === "delay" ? fault.addMs : 0);
      const begun = fault.kind === "disk slow" ? slow.filter(isSlowAt(endMs)) : [];
      sinceMs = Math.max(sinceMs, Math.min(nowMs, begun.reduce((sum, { flushMs }) => sum + flushMs, endMs)));
    }
    return sinceMs;
  }
}

/** Deletes what the reaper chose, a turn's worth at a time, so that nobody waits for a large clean-up. Owns its timer. */
import type { Clock } from "../../support/clock.ts";
import { dueNodes } from "./due_nodes.ts";
import type { KeeperState } from "./keeper_state.ts";

/** Nodes reaped in one turn. */
const reapedMax = 500;

export interface ReapingOptions {
  readonly clock: Clock;
  /** Wall-clock milliseconds, for TTL nodes. */
  readonly wallClock: () => number;
  /** Between two checks, in milliseconds. */
  readonly checkMs: number;
  /** The state to clean up; null while it cannot be changed. */
  readonly state: () => Pick<KeeperState<unknown>, "tree" | "reap"> | null;
  readonly turnEnded: () => void;
}

export class Reaping {
  readonly #options: ReapingOptions;
  #cancel = () => {};

  constructor(options: ReapingOptions) {
    this.#options = options;
    this.#later();
  }

  stop(): void {
    this.#cancel();
  }

  #later(): void {
    const { clock, checkMs, state, wallClock } = this.#options;
    this.#cancel = clock.after(checkMs, () => {
      const tree = state()?.tree;
      this.#reap(tree === undefined ? [] : dueNodes(tree.mortal, wallClock()));
    });
  }

  /** Things may have changed since they were chosen. */
  #reap(due: readonly { path: string; id: number }[]): void {
    const state = this.#options.state();
    for (const { path, id } of due.slice(0, reapedMax)) {
      const node = state?.tree.get(path);
      if (node?.id === id && node.children === null) state?.reap(node);
    }
    this.#options.turnEnded();
    if (due.length <= reapedMax) this.#later();
    else this.#cancel = this.#options.clock.after(0, () => this.#reap(due.slice(reapedMax)));
  }
}

/**
 * Deletes empty container nodes and expired TTL nodes. Divides a large clean-up into batches, so that the keeper can
 * serve clients between them. Owns its timer.
 */
import type { Clock } from "../../../base/support/clock.ts";
import type { KeeperState } from "./keeper_state.ts";
import type { ZNode } from "./tree.ts";

/** The most nodes that one batch deletes. */
const reapedMax = 500;

export interface ContainerNodeReaperOptions {
  readonly clock: Clock;
  /** Returns wall-clock milliseconds, for TTL nodes. */
  readonly wallClock: () => number;
  readonly checkMs: number;
  /** Returns the state to clean up; null while it cannot be changed. */
  readonly state: () => Pick<KeeperState<unknown>, "tree" | "reap"> | null;
  readonly flushReplies: () => void;
}

export class ContainerNodeReaper {
  readonly #options: ContainerNodeReaperOptions;
  #cancel = () => {};

  constructor(options: ContainerNodeReaperOptions) {
    this.#options = options;
    this.#scheduleCheck();
  }

  stop(): void {
    this.#cancel();
  }

  #scheduleCheck(): void {
    const { clock, checkMs, state, wallClock } = this.#options;
    this.#cancel = clock.startTimer(checkMs, () => {
      const tree = state()?.tree;
      this.#reap(tree === undefined ? [] : findExpiredNodes(tree.expirableNodes, wallClock()));
    });
  }

  /** Deletes the next batch. Checks the nodes again, because they may have changed since they were chosen. */
  #reap(due: readonly { path: string; id: number }[]): void {
    const state = this.#options.state();
    for (const { path, id } of due.slice(0, reapedMax)) {
      const node = state?.tree.get(path);
      if (node?.id === id && node.children === null) state?.reap(node);
    }
    this.#options.flushReplies();
    if (due.length <= reapedMax) this.#scheduleCheck();
    else this.#cancel = this.#options.clock.startTimer(0, () => this.#reap(due.slice(reapedMax)));
  }
}

/**
 * Returns the container and TTL nodes to delete now, children before their parents. As in ZooKeeper (ContainerManager),
 * a container is deleted after its last child, but stays if it never had a child. `wallMs` is the time for TTL nodes,
 * whose age counts from mtime.
 */
export function findExpiredNodes(expirable: Iterable<ZNode>, wallMs: number): ZNode[] {
  const due: ZNode[] = [];
  const deletedChildren = new Map<string, number>();
  // Checks the deepest nodes first, so that a container is deleted together with its last children.
  for (const node of deepestFirst(expirable)) {
    if ((node.children?.size ?? 0) > (deletedChildren.get(node.path) ?? 0)) continue;
    if (node.kind === "ttl" ? node.mtime + node.ttlMs > wallMs : node.creates === 0) continue;
    due.push(node);
    const parent = node.path.slice(0, node.path.lastIndexOf("/"));
    deletedChildren.set(parent, (deletedChildren.get(parent) ?? 0) + 1);
  }
  return due;
}

function deepestFirst(nodes: Iterable<ZNode>): ZNode[] {
  const byDepth: ZNode[][] = [];
  for (const node of nodes) {
    let depth = 0;
    for (let at = node.path.indexOf("/"); at !== -1; at = node.path.indexOf("/", at + 1)) depth++;
    (byDepth[depth] ??= []).push(node);
  }
  return byDepth.reverse().flat();
}

/**
 * Which containers and TTL nodes have had their time. A container goes when its last child is gone, as with the real
 * server (ContainerManager); one that never had a child goes too, after it was seen unused by two checks in a row, so that
 * whoever made it had a full period to use it.
 */
import type { ZNode } from "./tree.ts";

export class Reaper {
  #unused = new Map<ZNode, number>();

  /** The nodes to delete now, children before their parents. `wallMs` only serves TTL nodes, whose age counts from mtime. */
  check(mortal: Iterable<ZNode>, wallMs: number): ZNode[] {
    const unused = new Map<ZNode, number>();
    const due: ZNode[] = [];
    const doomedChildren = new Map<string, number>();
    // Deepest first: a container whose only children are containers that go now goes with them.
    for (const node of deepestFirst(mortal)) {
      if ((node.children?.size ?? 0) > (doomedChildren.get(node.path) ?? 0)) continue;
      if (node.kind === "ttl") {
        if (node.mtime + node.ttlMs > wallMs) continue;
      } else if (node.creates === 0 && this.#unused.get(node) !== node.version) {
        unused.set(node, node.version);
        continue;
      }
      due.push(node);
      const parent = node.path.slice(0, node.path.lastIndexOf("/"));
      doomedChildren.set(parent, (doomedChildren.get(parent) ?? 0) + 1);
    }
    this.#unused = unused;
    return due;
  }
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

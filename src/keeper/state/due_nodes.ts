/**
 * Which containers and TTL nodes have had their time, as with the real server (ContainerManager): a container goes when its
 * last child is gone, and one that never had a child stays.
 */
import type { ZNode } from "./tree.ts";

/** The nodes to delete now, children before their parents. `wallMs` only serves TTL nodes, whose age counts from mtime. */
export function dueNodes(mortal: Iterable<ZNode>, wallMs: number): ZNode[] {
  const due: ZNode[] = [];
  const doomedChildren = new Map<string, number>();
  // Deepest first: a container whose only children are containers that go now goes with them.
  for (const node of deepestFirst(mortal)) {
    if ((node.children?.size ?? 0) > (doomedChildren.get(node.path) ?? 0)) continue;
    if (node.kind === "ttl" ? node.mtime + node.ttlMs > wallMs : node.creates === 0) continue;
    due.push(node);
    const parent = node.path.slice(0, node.path.lastIndexOf("/"));
    doomedChildren.set(parent, (doomedChildren.get(parent) ?? 0) + 1);
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

/**
 * Creates nodes together with the containers above them. The server can remove an empty container at any time, so a
 * container may be missing when a node is created.
 */
import type { Acl, MultiRequest, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { createFlag } from "../../protocols/zookeeper/jute/zookeeper_operations.ts";
import { ancestorNodePaths } from "./node_paths.ts";
import { isServerRefusal, nullIfRefused } from "./node_requests.ts";

/**
 * The nodes above the new node that the caller believes to be missing: none, the inner container, both containers, or
 * also the nodes above both.
 */
export type MissingContainers = "nothing" | "inner" | "outer" | "parents";

export interface CreateContenderNodeOptions {
  readonly missing: MissingContainers;
  /** The requests that create the outer and the inner container. */
  readonly containers: readonly [MultiRequest, MultiRequest];
  /** The path of the new node, without the sequence that the server appends. */
  readonly prefix: string;
  readonly data: Uint8Array;
  readonly acl: Acl[];
}

/**
 * Creates an ephemeral node with a sequence, together with the missing containers, in one transaction. Returns the name
 * of the new node. If the missing nodes are not those in `missing`, creates nothing and returns the nodes that are
 * missing, for the next try.
 */
export async function createContenderNode(
  zk: ZooKeeper,
  { missing, containers, prefix, data, acl }: CreateContenderNodeOptions,
): Promise<{ readonly node: string } | { readonly missing: MissingContainers }> {
  for (const { path } of containers) zk.usesContainer?.(path);
  try {
    if (missing === "nothing") {
      const created = await zk.create(prefix, data, { mode: "ephemeralSequential", acl });
      return { node: nameOf(created.path) };
    }
    const made = (await zk.multi([
      ...containers.slice(missing === "inner" ? 1 : 0),
      { type: "create", path: prefix, data, acl, flags: createFlag.ephemeralSequential },
    ])).at(-1);
    return { node: nameOf(made?.type === "create" ? made.path : "") };
  } catch (thrown) {
    if (isServerRefusal(thrown, "NONODE")) {
      return { missing: missing === "nothing" || missing === "inner" ? "outer" : "parents" };
    }
    if (isServerRefusal(thrown, "NODEEXISTS")) return { missing: missing === "inner" ? "nothing" : "inner" };
    throw thrown;
  }
}

/**
 * Returns the request that creates a container. The server deletes a container some time after its last child is gone,
 * but never a container that has had no child. The caller must therefore create it in one transaction with its first
 * child.
 */
export function createContainerRequest(path: string, acl: Acl[], data: Uint8Array = new Uint8Array()): MultiRequest {
  return { type: "createContainer", path, data, acl, flags: createFlag.container };
}

/** Creates the missing nodes above a path. All requests go in one packet, so that a slow disk flushes only once. */
export async function createParentNodes(zk: ZooKeeper, path: string, acl: Acl[]): Promise<void> {
  const create = (parent: string) => nullIfRefused(zk.create(parent, new Uint8Array(), { acl }), "NODEEXISTS");
  const creations = ancestorNodePaths(path).map((parent) => ({ parent, creation: create(parent) }));
  for (const { creation } of creations) creation.catch(() => {}); // the first failure explains the others
  for (const { parent, creation } of creations) {
    await creation.catch((thrown) => {
      // The client creates the root of a new chroot together with the first node. The other requests came too early, so
      // they are repeated.
      if (isServerRefusal(thrown, "NONODE")) return create(parent);
      throw thrown;
    });
  }
}

const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

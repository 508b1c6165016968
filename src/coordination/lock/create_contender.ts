/** Adds a contender to the queue, together with the missing nodes above it, in one transaction. */
import type { Acl, MultiRequest, ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { createFlag } from "../../wire/jute/zookeeper_operations.ts";
import type { LockPath } from "./lock_path.ts";
import { isRefusal } from "../request_errors.ts";

/** Nodes that the caller believes to be missing. The server removes containers by itself, so the caller may be wrong. */
export type MissingNodes = "nothing" | "queue" | "lock" | "parents";

export interface CreateContenderOptions {
  readonly missing: MissingNodes;
  /** Path of the new node without the sequence that the server appends. */
  readonly prefix: string;
  readonly data: Uint8Array;
  readonly acl: Acl[];
  /** Data of the lock's node, if it has to be created. */
  readonly state: Uint8Array;
  /** True for a lock whose node the server must not remove. */
  readonly permanent: boolean;
}

/**
 * Returns the name of the new node, or the missing nodes: then nothing was created, and the caller tries again with these.
 * A container is created together with its first child, because the server never removes one that has had no child.
 */
export async function createContender(
  zk: ZooKeeper,
  path: LockPath,
  options: CreateContenderOptions,
): Promise<{ readonly node: string } | { readonly missing: MissingNodes }> {
  const { missing, prefix, data, acl, state, permanent } = options;
  const multi: MultiRequest[] = [
    permanent
      ? { type: "create", path: path.lock, data: state, acl, flags: createFlag.persistent }
      : containerRequest(path.lock, acl, state),
    containerRequest(path.queue, acl),
    { type: "create", path: prefix, data, acl, flags: createFlag.ephemeralSequential },
  ];
  try {
    if (missing === "nothing") {
      const created = await zk.create(prefix, data, { mode: "ephemeralSequential", acl });
      return { node: nameOf(created.path) };
    }
    const made = (await zk.multi(missing === "queue" ? multi.slice(1) : multi)).at(-1);
    return { node: nameOf(made?.type === "create" ? made.path : "") };
  } catch (thrown) {
    if (isRefusal(thrown, "NONODE")) {
      const above = { nothing: "lock", queue: "lock", lock: "parents", parents: "parents" } as const;
      return { missing: above[missing] };
    }
    if (isRefusal(thrown, "NODEEXISTS")) return { missing: missing === "queue" ? "nothing" : "queue" };
    throw thrown;
  }
}

/**
 * Creates a node that the server deletes some time after its last child is gone. Belongs into the transaction that creates the
 * first child: the server never deletes a container that has had no child.
 */
export function containerRequest(path: string, acl: Acl[], data: Uint8Array = new Uint8Array()): MultiRequest {
  return { type: "createContainer", path, data, acl, flags: createFlag.container };
}

/** Creates the missing nodes above a lock. */
export async function createParents(zk: ZooKeeper, path: Pick<LockPath, "parents">, acl: Acl[]): Promise<void> {
  for (const parent of path.parents) {
    try {
      await zk.create(parent, new Uint8Array(), { acl });
    } catch (thrown) {
      if (!isRefusal(thrown, "NODEEXISTS")) throw thrown;
    }
  }
}

const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

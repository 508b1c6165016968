/** Puts a contender into the queue, with whatever is missing above it, in one transaction. */
import type { Acl, MultiRequest, ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { createFlag } from "../../wire/jute/zookeeper_operations.ts";
import { containerRequest } from "../container_request.ts";
import type { LockPath } from "./lock_path.ts";
import { isRefusal } from "../request_errors.ts";

/** What is believed to be missing. Containers come and go by themselves, so that belief may be wrong. */
export type MissingNodes = "nothing" | "queue" | "lock" | "parents";

export interface CreateContenderOptions {
  readonly missing: MissingNodes;
  /** The node's path, up to the sequence that the server appends. */
  readonly prefix: string;
  readonly data: Uint8Array;
  readonly acl: Acl[];
  /** The data of a lock that has to be made. */
  readonly state: Uint8Array;
  /** The lock is an ordinary node, which nobody reaps. */
  readonly permanent: boolean;
}

/**
 * The new node's name, or what turned out to be missing: then nothing was made, and the caller tries again with that.
 * Containers are made together with their first child: one that never had a child would never be reaped.
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

/** Makes the ordinary nodes above a lock, those that are missing. */
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

/** Many objects for the page of `baton ui`: nodes as baton writes them, made by one session. */
import { formatLockState } from "../../src/coordination/lock/lock_state.ts";
import { formatNewNode } from "../../src/coordination/holder_info.ts";
import { lockPath } from "../../src/coordination/lock/lock_path.ts";
import { contenderPrefix, holderName } from "../../src/coordination/lock/lock_nodes.ts";
import { mapInBatches, nullIfRefused } from "../../src/coordination/request_errors.ts";
import { newGuid } from "../../src/support/guid.ts";
import type { ZooKeeper } from "../../src/zookeeper/zookeeper.ts";

const nothing = new Uint8Array(0);

export async function makeParents(zk: ZooKeeper, path: string): Promise<void> {
  const parts = path.split("/").slice(1);
  for (let depth = 1; depth <= parts.length; depth++) {
    await nullIfRefused(zk.create(`/${parts.slice(0, depth).join("/")}`, nothing), "NODEEXISTS");
  }
}

export interface SeededLock {
  readonly name: string;
  readonly waiters?: number;
  readonly reason?: string;
  readonly user?: string;
  readonly host?: string;
  readonly command?: string;
}

/** Locks that this session holds. Returns the id of each holder by the name of its lock. */
export async function seedLocks(
  zk: ZooKeeper,
  locks: readonly SeededLock[],
  root = "/baton",
): Promise<Map<string, string>> {
  await makeParents(zk, `${root}/locks`);
  const made = await mapInBatches(locks, 100, async (lock) => {
    const { name, waiters = 0, reason = "", user = "root", host = "db1", command = "backup.sh" } = lock;
    const path = lockPath(name, root);
    const info = formatNewNode({ user, host, pid: 812, argv0: command, reason }, { timeoutMs: zk.session.timeoutMs });
    await zk.create(path.lock, formatLockState({ limit: null }), { mode: "container" });
    await Promise.all([path.holders, path.queue].map((node) => zk.create(node, nothing, { mode: "container" })));
    const guid = newGuid();
    const holder = `${path.holders}/${holderName({ mode: "exclusive", slot: null, guid })}`;
    await zk.create(holder, info, { mode: "ephemeral" });
    for (let count = 0; count < waiters; count++) {
      const contender = `${path.queue}/${contenderPrefix(100, "exclusive", newGuid())}`;
      await zk.create(contender, info, { mode: "ephemeralSequential" });
    }
    return [name, guid] as const;
  });
  return new Map(made);
}

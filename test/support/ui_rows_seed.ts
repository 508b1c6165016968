/** Many objects for the page of `baton ui`: nodes as baton writes them, made by one session. */
import { PubsubPath } from "../../src/pubsub/ownership/pubsub_path.ts";
import { topicNodeAfterAssignment } from "../../src/pubsub/ownership/topic_node.ts";
import { TopicNodes } from "../../src/pubsub/ownership/topic_nodes.ts";
import { DirectStore } from "../../src/retry/queue/sqlite/direct_store.ts";
import { readOnlyRules } from "../../src/retry/queue/store_rules.ts";
import { formatLockState } from "../../src/coordination/lock/lock_state.ts";
import { formatNewHolderNodeInfo } from "../../src/coordination/nodes/holder_info.ts";
import { lockPath } from "../../src/coordination/nodes/node_paths.ts";
import { contenderNodePrefix, holderNodeName } from "../../src/coordination/lock/lock_nodes.ts";
import { mapInBatches, nullIfRefused } from "../../src/coordination/nodes/node_requests.ts";
import { newGuid } from "../../src/base/support/guid.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";

export const lockCount = 1000;
export const topicCount = 200;
export const deadCount = 10_000;

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
    const info = formatNewHolderNodeInfo({ user, host, pid: 812, argv0: command, reason }, {
      timeoutMs: zk.session.timeoutMs,
    });
    await zk.create(path.lock, formatLockState({ limit: null }), { mode: "container" });
    await Promise.all([path.holders, path.queue].map((node) => zk.create(node, nothing, { mode: "container" })));
    const guid = newGuid();
    const holder = `${path.holders}/${holderNodeName({ mode: "exclusive", slot: null, guid })}`;
    await zk.create(holder, info, { mode: "ephemeral" });
    for (let count = 0; count < waiters; count++) {
      const contender = `${path.queue}/${contenderNodePrefix(100, "exclusive", newGuid())}`;
      await zk.create(contender, info, { mode: "ephemeralSequential" });
    }
    return [name, guid] as const;
  });
  return new Map(made);
}

/** 1,000 locks, 200 topics, and 10,000 dead letters. Returns the id of each holder by the name of its lock. */
export async function seedPage(zk: ZooKeeper, storeFolder: string): Promise<Map<string, string>> {
  const name = (index: number) => `job/${String(index).padStart(4, "0")}`;
  const jobs = Array.from({ length: lockCount - 2 }, (_, index) => ({ name: name(index) }));
  const ids = await seedLocks(zk, [
    { name: "nightly", waiters: 3, reason: "full backup" },
    { name: "<img src=x>\u202e&amp;", user: "eve" },
    ...jobs,
  ]);
  // Nodes of other programs, and of another version, must not hide the others.
  await makeParents(zk, "/baton/locks/not%00baton");
  await makeParents(zk, "/baton/locks/other/child");
  await makeParents(zk, "/baton/ticks/other/id");
  const path = new PubsubPath("/baton");
  await makeParents(zk, path.topics);
  const nodes = new TopicNodes(zk, path);
  for (let index = 0; index < topicCount; index++) {
    await nodes.create(`topic${String(index).padStart(3, "0")}`, topicNodeAfterAssignment("server1", "one"));
  }
  const rules = { ...readOnlyRules, maxBytes: 1 << 30, maxMessages: 1_000_000 };
  await using store = new DirectStore(storeFolder, rules, { mustExist: false });
  const tried = { outcome: "final", retryAfterMs: null, error: "exited with 64" } as const;
  const head = { kind: "command", argv: null, cwd: null } as const;
  const message = { head, body: new Uint8Array(10), key: null, tried };
  for (let made = 0; made < deadCount; made += 1000) {
    await store.call("accept", Array.from({ length: 1000 }, () => message), Date.now());
  }
  return ids;
}

/** Reads the leader of an election, and follows changes of leaders. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { type LeaderAndHistory, type LeaderChange, LeaderChanges } from "./election_history.ts";
import { parseLeaderGrants } from "./election_state.ts";
import { electionPath, type LockPath } from "../nodes/node_paths.ts";
import type { AcquireLockOptions } from "../lock/acquire_lock.ts";
import { parseHolderNode } from "../lock/lock_nodes.ts";
import { nullIfNoNode, readAfterSync, readChildNames, readTwiceAtMost } from "../nodes/node_requests.ts";
import { systemClock } from "../../base/support/clock.ts";
import type { OneTimeEvent } from "../../base/support/event.ts";
import { readNodesOnChange } from "../nodes/read_nodes_on_change.ts";

export interface LeaderStatus extends LeaderAndHistory {
  readonly name: string;
  readonly path: string;
}

/** Reads the leader of an election; an election that does not exist has none. Reads again if the connection is lost. */
export async function readLeaderStatus(
  zk: ZooKeeper,
  name: string,
  options: { readonly root?: string } = {},
): Promise<LeaderStatus> {
  const path = electionPath(name, options.root);
  return await readTwiceAtMost(zk, async () => {
    return { name, path: path.lock, ...await readAfterSync(zk, path.lock, () => readLeader(zk, path)) };
  });
}

/** The most tries to read a consistent state, if grants come between the two reads. */
const triesMax = 10;

/**
 * Reads the history, then the holder. If the holder is not the newest grant, it was elected between the two reads, so
 * both are read again. `watch` is called at the next change of the history or the holder.
 */
async function readLeader(zk: ZooKeeper, path: LockPath, watch?: () => void): Promise<LeaderAndHistory> {
  for (let tries = 1;; tries++) {
    const options = watch === undefined ? {} : { watch };
    const [state, holders] = await Promise.all([
      nullIfNoNode(zk.getData(path.lock, options)),
      readChildNames(zk, path.holders, options),
    ]);
    const history = state === null ? [] : parseLeaderGrants({ data: state.data, mzxid: state.stat.mzxid }, path.lock);
    // A missing node cannot be watched, so the creation of the node by the first candidate is watched.
    if (state === null && watch !== undefined && await zk.exists(path.lock, options) !== null) continue;
    const ids = holders.map((child) => parseHolderNode(child)?.guid);
    if (ids.length === 0) return { leader: null, history };
    const newest = history.at(-1);
    if (newest !== undefined && ids.includes(newest.id)) return { leader: newest, history };
    if (tries === triesMax) return { leader: null, history };
  }
}

export interface WatchLeaderOptions extends Pick<AcquireLockOptions, "root" | "signal" | "clock"> {
  /** The changes that an earlier session has yielded, to continue after them. */
  readonly changes?: LeaderChanges;
}

/**
 * Yields the current leader, then each change. If there were more than 64 grants between two reads, yields the number
 * of the older ones as a single `missed`. Ends when the signal aborts. Throws when the session ends or the server
 * refuses a read.
 */
export async function* watchLeader(
  zk: ZooKeeper,
  name: string,
  options: WatchLeaderOptions = {},
): AsyncGenerator<LeaderChange, void, void> {
  const { root, signal, changes = new LeaderChanges(), clock = systemClock() } = options;
  const path = electionPath(name, root);
  const pause = (event: OneTimeEvent) => event.wait();
  for await (const reading of readNodesOnChange(zk, (wake) => readLeader(zk, path, wake), { signal, clock, pause })) {
    yield* changes.changesAfter(reading);
  }
}

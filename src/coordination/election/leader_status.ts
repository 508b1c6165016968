/** Who leads: a look, no decision. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import type { Grant } from "./election_history.ts";
import { electionPath } from "./election_path.ts";
import { historyOf } from "./election_state.ts";
import { parseHolder } from "../lock/lock_nodes.ts";
import type { LockPath } from "../lock/lock_path.ts";
import { isTransient, nullIfNoNode } from "../request_errors.ts";

export interface LeaderReading {
  /** Null when nobody leads. */
  readonly leader: Grant | null;
  /** The last grants, the newest last. */
  readonly history: readonly Grant[];
}

export interface LeaderStatus extends LeaderReading {
  readonly name: string;
  /** The election's node on the server. */
  readonly path: string;
}

/** An election that does not exist has no leader. */
export async function leaderStatus(
  zk: ZooKeeper,
  name: string,
  options: { readonly root?: string } = {},
): Promise<LeaderStatus> {
  const path = electionPath(name, options.root);
  const look = async () => {
    // In one write with the reads behind it: a follower that lags would name who led before.
    const [, reading] = await Promise.all([zk.sync(path.lock), readLeader(zk, path)]);
    return { name, path: path.lock, ...reading };
  };
  try {
    return await look();
  } catch (thrown) {
    if (!isTransient(thrown) || zk.session.ended.aborted) throw thrown;
    return await look();
  }
}

/** Grants between the two reads of one look; more in a row are not to be expected. */
const looksMax = 10;

/**
 * The history is asked for first: a leader that it does not end with was elected in between, and it is read again. With
 * `watch` it is called at the next change of either.
 */
export async function readLeader(zk: ZooKeeper, path: LockPath, watch?: () => void): Promise<LeaderReading> {
  for (let looks = 1;; looks++) {
    const options = watch === undefined ? {} : { watch };
    const [state, holders] = await Promise.all([
      nullIfNoNode(zk.getData(path.lock, options)),
      nullIfNoNode(zk.getChildren(path.holders, options)),
    ]);
    const history = state === null ? [] : historyOf({ data: state.data, mzxid: state.stat.mzxid }, path.lock);
    // Nothing that could be watched: the next candidate makes it.
    if (state === null && watch !== undefined && await zk.exists(path.lock, options) !== null) continue;
    const ids = (holders?.children ?? []).map((child) => parseHolder(child)?.guid);
    if (ids.length === 0) return { leader: null, history };
    const newest = history.at(-1);
    if (newest !== undefined && ids.includes(newest.id)) return { leader: newest, history };
    if (looks === looksMax) return { leader: null, history };
  }
}

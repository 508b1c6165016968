/**
 * Calls a read function again after each change of the nodes that it has read. Also calls it from time to time, in case
 * a watch was lost.
 */
import type { NodeReadOptions, Stat, WatchEvent, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { type Clock, systemClock } from "../../base/support/clock.ts";
import { resultInTimeOrNull, sleep } from "../../base/support/deadline.ts";
import { readNodesOnChange } from "./read_nodes_on_change.ts";
import { isServerRefusal, nullIfNoNode } from "./node_requests.ts";
import { replaceZooKeeperCalls } from "./replaced_calls.ts";

interface FollowReadsOptions {
  readonly signal: AbortSignal;
  readonly clock?: Clock;
  /** The longest time between two reads, in milliseconds. */
  readonly everyMs?: number;
}

/** The time from a change to the next read, in milliseconds. Changes within this time are read together. */
const gatherMs = 50;
const readShareMax = 0.25;
const restMsMax = 10_000;
const everyMsDefault = 5000;

/**
 * Returns the pause after a read that took `tookMs`, both in milliseconds. With this pause, reading takes at most a
 * quarter of the time, unless a single read takes very long. Pure.
 */
export const restMsAfterNodeRead = (tookMs: number): number => Math.min(restMsMax, tookMs * (1 / readShareMax - 1));

/**
 * Yields the result of each read. Ends when the signal aborts. Throws when the session ends or the server refuses a
 * read.
 */
export function followNodeReads<T>(
  zk: ZooKeeper,
  read: (zk: ZooKeeper) => Promise<T>,
  { signal, clock = systemClock(), everyMs = everyMsDefault }: FollowReadsOptions,
): AsyncGenerator<T, void, void> {
  let reader: ZooKeeper | null = null;
  return readNodesOnChange(zk, (wake) => read(reader ??= watchReads(zk, wake)), {
    signal,
    clock,
    async pause(event, tookMs) {
      await resultInTimeOrNull(clock, everyMs, event.wait());
      await sleep(clock, Math.max(gatherMs, restMsAfterNodeRead(tookMs)), signal).catch(() => {});
    },
  });
}

/**
 * The most watched nodes, because each watch uses memory on the server. The periodic reads find changes of other nodes.
 */
const watchesMax = 2000;

/**
 * Returns a client that calls `onChange` when a node that it has read changes, is created or is deleted. After
 * `exists`, it reports only a change of the number of children, because callers use `exists` to count holders and
 * waiters.
 */
function watchReads(zk: ZooKeeper, onChange: () => void): ZooKeeper {
  const watched = new Set<string>();
  const watch = ({ path }: WatchEvent): void => { // one function, because the client keeps a set
    watched.delete(path);
    onChange();
  };
  const canWatch = (path: string) => watched.has(path) || (watched.size < watchesMax && watched.add(path).has(path));
  const options = (path: string, given: NodeReadOptions = {}): NodeReadOptions =>
    canWatch(path) ? { ...given, watch } : given;
  const countChildren = async (path: string, given?: NodeReadOptions): Promise<Stat | null> => {
    if (!canWatch(path)) return await zk.exists(path, given);
    try {
      const list = await nullIfNoNode(zk.getChildren(path, { ...given, watch }));
      return list?.stat ?? await zk.exists(path, { ...given, watch });
    } catch (thrown) {
      if (!isServerRefusal(thrown, "NOAUTH")) throw thrown;
      return await zk.exists(path, given);
    }
  };
  /** Reads a node. If the node is missing, watches its creation. */
  const watchMissing = async <T>(path: string, reading: Promise<T>): Promise<T> => {
    try {
      return await reading;
    } catch (thrown) {
      if (!isServerRefusal(thrown, "NONODE") || !canWatch(path)) throw thrown;
      if (await zk.exists(path, { watch }) !== null) onChange(); // created meanwhile
      throw thrown;
    }
  };
  const reads: Partial<ZooKeeper> = {
    exists: countChildren,
    getData: (path, given) => watchMissing(path, zk.getData(path, options(path, given))),
    getChildren: (path, given) => watchMissing(path, zk.getChildren(path, options(path, given))),
  };
  return replaceZooKeeperCalls(zk, reads);
}

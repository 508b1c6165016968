/** Sets a watch with every read, so that a caller learns when anything that it has read may have changed. */
import type { ReadOptions, Stat, WatchEvent, ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { isRefusal, nullIfNoNode } from "../request_errors.ts";

/** The maximum number of watched nodes: each costs memory on the server. Changes of other nodes are found by reading again. */
const watchesMax = 2000;

/**
 * Returns a client whose reads call `onChange` when a node that was read changes, is created or is deleted. `exists` reports
 * changes of the number of children, not of the data: it counts holders and waiters.
 */
export function watchReads(zk: ZooKeeper, onChange: () => void): ZooKeeper {
  const watched = new Set<string>();
  const watch = ({ path }: WatchEvent): void => { // the same function for every watch: the client keeps a set of them
    watched.delete(path);
    onChange();
  };
  const canWatch = (path: string) => watched.has(path) || (watched.size < watchesMax && watched.add(path).has(path));
  const options = (path: string, given: ReadOptions = {}): ReadOptions => canWatch(path) ? { ...given, watch } : given;
  const countChildren = async (path: string, given?: ReadOptions): Promise<Stat | null> => {
    if (!canWatch(path)) return await zk.exists(path, given);
    try {
      const list = await nullIfNoNode(zk.getChildren(path, { ...given, watch }));
      return list?.stat ?? await zk.exists(path, { ...given, watch });
    } catch (thrown) {
      if (!isRefusal(thrown, "NOAUTH")) throw thrown;
      return await zk.exists(path, given);
    }
  };
  /** A missing node has neither data nor children to watch, but its creation can be watched. */
  const watchMissing = async <T>(path: string, reading: Promise<T>): Promise<T> => {
    try {
      return await reading;
    } catch (thrown) {
      if (!isRefusal(thrown, "NONODE") || !canWatch(path)) throw thrown;
      if (await zk.exists(path, { watch }) !== null) onChange(); // created meanwhile
      throw thrown;
    }
  };
  const reads: Partial<ZooKeeper> = {
    exists: countChildren,
    getData: (path, given) => watchMissing(path, zk.getData(path, options(path, given))),
    getChildren: (path, given) => watchMissing(path, zk.getChildren(path, options(path, given))),
  };
  return new Proxy(zk, {
    get(client, name: keyof ZooKeeper) {
      const value: unknown = reads[name] ?? client[name];
      return typeof value === "function" ? value.bind(client) : value;
    },
  });
}

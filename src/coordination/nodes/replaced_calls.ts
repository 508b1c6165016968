/** Replaces some functions of a ZooKeeper client. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";

/** Returns a client that uses the functions in `calls`, and the functions of `zk` for all others. */
export function replaceZooKeeperCalls(zk: ZooKeeper, calls: Partial<ZooKeeper>): ZooKeeper {
  return new Proxy(zk, {
    get(client, name: keyof ZooKeeper) {
      const value: unknown = calls[name] ?? client[name];
      return typeof value === "function" ? value.bind(client) : value;
    },
  });
}

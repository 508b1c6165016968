/** A client that makes some calls in another way. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";

/** Returns the same client with `calls` in place of its own. */
export function replaceZooKeeperCalls(zk: ZooKeeper, calls: Partial<ZooKeeper>): ZooKeeper {
  return new Proxy(zk, {
    get(client, name: keyof ZooKeeper) {
      const value: unknown = calls[name] ?? client[name];
      return typeof value === "function" ? value.bind(client) : value;
    },
  });
}

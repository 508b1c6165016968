/**
 * Whether the servers of an ensemble have one tree. They need not: ZooKeeper 3.8.0 that is killed and stopped again and
 * again may come out of it with a node on one server that the others have not (ZOOKEEPER-4712, -4785, -4394), and
 * spread it to them. Each is asked by itself, with the protocol by hand: what the client under test says of it counts
 * for nothing here.
 */
import type { RunningBackend } from "../../../support/backends.ts";
import { RawClient } from "../../../support/raw_client.ts";

/** What is not the same everywhere, below and at these paths; all servers have to be up, and nobody may write. */
export async function disagreements({ nodes }: RunningBackend, paths: readonly string[]): Promise<string[]> {
  const trees = await Promise.all(nodes.map(async ({ address }) => {
    const client = await RawClient.connect(address);
    await client.call("sync", { path: "/" });
    const seen = await Promise.all(paths.map(async (path) => {
      const { value } = await client.call("getChildren2", { path, watch: false });
      return value === null ? "no node" : `${value.stat.mzxid}: ${[...value.children ?? []].sort().join(", ")}`;
    }));
    await client.close();
    return seen;
  }));
  return paths.filter((_, at) => new Set(trees.map((seen) => seen[at])).size > 1);
}

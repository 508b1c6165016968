/**
 * Holds a server's name while an operator's command changes its topics, so that the server cannot start in the
 * meantime.
 */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { BatonError } from "../../errors.ts";
import { isRefusal, nullIfNoNode } from "../../coordination/request_errors.ts";
import { parseAnnouncement } from "./announcements.ts";
import type { PubsubPath } from "./pubsub_path.ts";
import { makeParents } from "./topic_nodes.ts";

/** Rejects with LOCK_BUSY while the server runs or its session may still be alive. */
export async function withServerName<T>(
  zk: ZooKeeper,
  path: PubsubPath,
  { id, what }: { readonly id: string; readonly what: "forget" | "restore" },
  work: () => Promise<T>,
): Promise<T> {
  const name = path.server(id);
  const data = new TextEncoder().encode(JSON.stringify({ layout: 1, operation: what, server: id }));
  for (;;) {
    try {
      await zk.create(name, data, { mode: "ephemeral" });
      break;
    } catch (thrown) {
      if (isRefusal(thrown, "NONODE")) {
        await makeParents(zk, name);
        continue;
      }
      if (!isRefusal(thrown, "NODEEXISTS")) throw thrown;
      const found = await nullIfNoNode(zk.getData(name));
      const at = found === null ? null : parseAnnouncement(found.data);
      throw new BatonError(
        "LOCK_BUSY",
        `Cannot ${what} the server "${id}": ` +
          (at === null
            ? "another operator's command is running for it"
            : `it is running at ${at.endpoint}, or its session has not ended yet; stop it and wait for the session timeout`),
        { cause: thrown },
      );
    }
  }
  try {
    return await work();
  } finally {
    await zk.delete(name, -1).catch(() => {}); // the node ends with the session at the latest
  }
}

/** An operator's work on what a server has: its name is held meanwhile, so that it cannot come back in between. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { BatonError } from "../../errors.ts";
import { isRefusal, nullIfNoNode } from "../../coordination/request_errors.ts";
import { parseAnnouncement } from "./announcements.ts";
import type { PubsubPath } from "./pubsub_path.ts";
import { makeParents } from "./topic_nodes.ts";

/** Rejects with LOCK_BUSY while the server is there, or may still answer: its session has to end first. */
export async function holdingServerName<T>(
  zk: ZooKeeper,
  path: PubsubPath,
  { id, what }: { readonly id: string; readonly what: "forget" | "restore" },
  work: () => Promise<T>,
): Promise<T> {
  const name = path.server(id);
  const data = new TextEncoder().encode(JSON.stringify({ layout: 1, [`${what.replace(/e?$/, "")}ing`]: id }));
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
            ? "somebody else is at it"
            : `it is there, at ${at.endpoint}, or was a moment ago; stop it and wait until its session has ended`),
        { cause: thrown },
      );
    }
  }
  try {
    return await work();
  } finally {
    await zk.delete(name, -1).catch(() => {}); // it ends with the session at the latest
  }
}

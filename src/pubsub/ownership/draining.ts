/**
 * Marks a server as draining (it receives no new topics), or removes the mark. The mark is in the server's announcement
 * and ends with its process.
 */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { isRefusal, nullIfNoNode } from "../../coordination/request_errors.ts";
import { formatAnnouncement, parseAnnouncement } from "./announcements.ts";
import type { PubsubPath } from "./pubsub_path.ts";

/** Returns false if the server is not running. */
export async function setDraining(zk: ZooKeeper, path: PubsubPath, id: string, isDraining: boolean): Promise<boolean> {
  const node = path.server(id);
  for (;;) {
    const found = await nullIfNoNode(zk.getData(node));
    const announcement = found === null ? null : parseAnnouncement(found.data);
    if (found === null || announcement === null) return false;
    if ((announcement.isDraining ?? false) === isDraining) return true;
    try {
      await zk.setData(node, formatAnnouncement({ ...announcement, isDraining }), found.stat.version);
      return true;
    } catch (thrown) {
      // The announcement has changed or the server has stopped.
      if (!isRefusal(thrown, "BADVERSION", "NONODE")) throw thrown;
    }
  }
}

/** Has a server take no new topics, or take them again: it says so where it is announced, for as long as its process lives. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { isRefusal, nullIfNoNode } from "../../coordination/request_errors.ts";
import { formatAnnouncement, parseAnnouncement } from "./announcements.ts";
import type { PubsubPath } from "./pubsub_path.ts";

/** False: the server is not there. */
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
      // It was announced anew meanwhile, or has left.
      if (!isRefusal(thrown, "BADVERSION", "NONODE")) throw thrown;
    }
  }
}

/**
 * Gives up what a server has that is lost for good: its topics begin again, empty. By an operator only, who says that the
 * loss is accepted. The server's name is held meanwhile, so that it cannot come back in between; when it comes back
 * later it finds that its data is not what is named any more, and keeps it aside.
 */
import type { ZooKeeper } from "../../../clients/zookeeper/zookeeper.ts";
import { BatonError } from "../../../errors.ts";
import { newGuid } from "../../../support/guid.ts";
import { orNull } from "../../lock_view.ts";
import { isRefusal } from "../../transient_error.ts";
import { parseAnnouncement } from "./announce.ts";
import { type ListedTopic, listTopics } from "./list_topics.ts";
import type { PubsubPath } from "./pubsub_path.ts";
import { forgotten, returned, type TopicNode } from "./topic_node.ts";
import { makeParents, type ReadTopic, TopicNodes } from "./topic_nodes.ts";

export interface Forgotten {
  /** Topics whose messages, cursors and windows are given up. */
  readonly lost: readonly string[];
  /** Topics that were on their way to the server: the one they came from has everything, and has them back. */
  readonly returned: readonly string[];
}

/** Rejects with LOCK_BUSY while the server is there, or may still answer: its session has to end first. */
export async function forgetServer(zk: ZooKeeper, path: PubsubPath, id: string): Promise<Forgotten> {
  const name = path.server(id);
  await holdName(zk, name, id);
  try {
    const nodes = new TopicNodes(zk, path);
    const lost: string[] = [];
    const back: string[] = [];
    for await (const listed of listTopics(zk, path)) {
      const done = await giveUp(nodes, listed, id);
      if (done === "lost") lost.push(listed.topic);
      if (done === "returned") back.push(listed.topic);
    }
    return { lost, returned: back };
  } finally {
    await zk.delete(name, -1).catch(() => {}); // it ends with the session at the latest
  }
}

async function holdName(zk: ZooKeeper, name: string, id: string): Promise<void> {
  for (;;) {
    try {
      await zk.create(name, new TextEncoder().encode(JSON.stringify({ layout: 1, forgetting: id })), {
        mode: "ephemeral",
      });
      return;
    } catch (thrown) {
      if (isRefusal(thrown, "NONODE")) {
        await makeParents(zk, name);
        continue;
      }
      if (!isRefusal(thrown, "NODEEXISTS")) throw thrown;
      const found = await orNull(zk.getData(name));
      const at = found === null ? null : parseAnnouncement(found.data);
      throw new BatonError(
        "LOCK_BUSY",
        `Cannot forget the server "${id}": ` +
          (at === null
            ? "somebody else is at it"
            : `it is there, at ${at.endpoint}, or was a moment ago; stop it and wait until its session has ended`),
        { cause: thrown },
      );
    }
  }
}

async function giveUp(nodes: TopicNodes, listed: ListedTopic, id: string): Promise<"lost" | "returned" | "kept"> {
  const { topic } = listed;
  let read: ReadTopic | null = listed;
  for (;;) {
    // What is new has nothing to lose: a proxy gives it to another server by itself.
    if (read === null || read.node.owner !== id || read.node.state === "new") return "kept";
    const back: TopicNode | null = returned(read.node);
    const next: TopicNode | null = back ?? forgotten(read.node, newGuid());
    if (next === null) {
      throw new BatonError("BAD_DATA", `"${topic}" was given up too often: no sequence numbers are left for it`);
    }
    const outcome = await nodes.write(topic, next, read.version);
    if (outcome !== "written") {
      // Its receiver took it, or the answer was lost.
      await nodes.catchUp(topic);
      read = await nodes.read(topic);
      if (read === null || read.node.birth !== next.birth || read.node.epoch !== next.epoch) continue;
    }
    await nodes.uncount(topic, id);
    return back === null ? "lost" : "returned";
  }
}

/**
 * Opens a store in a folder that is not there, whose parent is not there either, and is killed. argv: folder, which
 * store; for `backup` also the store that is copied there.
 */
import { mkdirSync } from "node:fs";
import process from "node:process";
import { KeeperDatabase } from "../../../src/coordination/keeper/storage/keeper_database.ts";
import { ClientState } from "../../../src/pubsub/client/client_state.ts";
import { MessageFolder } from "../../../src/pubsub/client/message_folder.ts";
import { backupTopicStore } from "../../../src/pubsub/store/sqlite/backup_topic_store.ts";
import { TopicDatabase } from "../../../src/pubsub/store/sqlite/topic_database.ts";
import { RetryDatabase } from "../../../src/retry/queue/sqlite/retry_database.ts";
import { systemClock } from "../../../src/base/support/clock.ts";

const [folder = "", which = "", from = ""] = process.argv.slice(2);
switch (which) {
  case "keeper":
    mkdirSync(folder, { recursive: true });
    new KeeperDatabase(folder);
    break;
  case "topics":
    new TopicDatabase(folder);
    break;
  case "client":
    await ClientState.open(folder, "alice", { waitMs: 0, clock: systemClock() });
    break;
  case "inbox": {
    const place = { cursor: -1, intent: -1, folder: null };
    const state = { id: "alice", subscriberPosition: () => place, setPosition: () => {} } as unknown as ClientState;
    new MessageFolder(folder, { state, topic: "news" });
    break;
  }
  case "backup":
    backupTopicStore(from, folder);
    break;
  case "retry":
    new RetryDatabase(folder);
    break;
}
process.kill(process.pid, "SIGKILL");

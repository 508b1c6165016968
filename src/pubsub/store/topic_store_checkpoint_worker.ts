/**
 * The entry point of the thread that checkpoints a topic store's log while the storage thread continues to commit. If
 * another connection blocks a checkpoint, the next checkpoint continues its work.
 */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { parentPort } from "node:worker_threads";
import { topicDatabaseName } from "./sqlite/topic_database.ts";

const port = parentPort;
if (port === null) throw new Error("The storage thread was started as a program");

let database: DatabaseSync | null = null;

port.on("message", ({ dataDir }: { readonly dataDir: string }) => {
  try {
    database ??= new DatabaseSync(join(dataDir, topicDatabaseName));
    database.exec("PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(PASSIVE)");
  } catch {
    // Committed data is safe in the log. The storage thread will meet the same error and report it.
  }
  port.postMessage({ done: true });
});

/**
 * The thread that copies the store's log into its database while the other one goes on committing. Its connection only
 * ever does that; a checkpoint that finds somebody in the way leaves the rest for the next.
 */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { parentPort } from "node:worker_threads";
import { databaseName } from "./topic_database.ts";

const port = parentPort;
if (port === null) throw new Error("The storage thread was started as a program");

let database: DatabaseSync | null = null;

port.on("message", (request: { readonly dataDir: string } | { readonly close: true }) => {
  try {
    if ("close" in request) {
      database?.close();
      database = null;
    } else {
      database ??= new DatabaseSync(join(request.dataDir, databaseName));
      database.exec("PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(PASSIVE)");
    }
  } catch {
    // What is committed is in the log all the same; the committing thread meets the same trouble, and tells it.
  }
  port.postMessage({ done: true });
});

/** The thread that waits for the disk, so that the keeper never does. One request at a time, answered in order. */
import { parentPort } from "node:worker_threads";
import { BatonError } from "../../errors.ts";
import { Database, DirectoryOwned } from "./keeper_database.ts";
import type { StoreReply, StoreRequest } from "./keeper_store_messages.ts";

const idleMs = 200;

const port = parentPort;
if (port === null) throw new Error("The store's thread was started as a program of its own");

let database: Database | null = null;
let idleTimer: ReturnType<typeof setTimeout> | undefined;

function reply(message: StoreReply): void {
  port?.postMessage(message);
}

function opened(): Database {
  if (database === null) throw new Error("the store is not open");
  return database;
}

function tidy(occasion: "idle" | "busy"): void {
  try {
    database?.checkpoint(occasion);
    if (occasion === "idle") database?.reserveLog();
  } catch {
    // a full disk, or a reader in the way: what is committed is in the log all the same, and the next time is soon
  }
}

function answer(request: StoreRequest): void {
  switch (request.kind) {
    case "open":
      database = new Database(request.dataDir);
      break;
    case "load":
      for (const bytes of opened().load()) reply({ kind: "piece", bytes });
      break;
    case "confirm":
      opened().confirm();
      break;
    case "commit":
      opened().commit(request.changes);
      break;
    case "close":
      clearTimeout(idleTimer);
      database?.close();
      database = null;
      break;
  }
  reply({ kind: "done" });
}

port.on("message", (request: StoreRequest) => {
  try {
    answer(request);
  } catch (error) {
    if (error instanceof DirectoryOwned) reply({ kind: "owned" });
    else if (error instanceof BatonError) reply({ kind: "failed", message: error.message, isWhole: true });
    else reply({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
  }
  if (request.kind !== "commit") return;
  tidy("busy");
  clearTimeout(idleTimer);
  idleTimer = setTimeout(tidy, idleMs, "idle");
});

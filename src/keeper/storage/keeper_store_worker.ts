/** The storage thread: it waits for the disk so that the keeper does not. Executes one request at a time, in order. */
import { parentPort } from "node:worker_threads";
import { BatonError } from "../../errors.ts";
import { DataDirectoryOwned, KeeperDatabase } from "./keeper_database.ts";

const idleMs = 200;

const port = parentPort;
if (port === null) throw new Error("The storage thread was started as a program");

let database: KeeperDatabase | null = null;
let idleTimer: ReturnType<typeof setTimeout> | undefined;

function reply(message: KeeperStoreReply): void {
  port?.postMessage(message);
}

function requireDatabase(): KeeperDatabase {
  if (database === null) throw new Error("the store is not open");
  return database;
}

function checkpointAndReserve(occasion: "idle" | "busy"): void {
  try {
    database?.checkpoint(occasion);
    if (occasion === "idle") database?.reserveLog();
  } catch {
    // The disk is full, or another process reads. The commits are in the log, and the next attempt follows soon.
  }
}

function handleRequest(request: KeeperStoreRequest): void {
  switch (request.kind) {
    case "open":
      database = new KeeperDatabase(request.dataDir);
      break;
    case "load":
      for (const bytes of requireDatabase().load()) reply({ kind: "piece", bytes });
      break;
    case "confirm":
      requireDatabase().confirmOwner();
      break;
    case "commit":
      requireDatabase().commit(request.changes);
      break;
    case "close":
      clearTimeout(idleTimer);
      database?.close();
      database = null;
      break;
  }
  reply({ kind: "done" });
}

port.on("message", (request: KeeperStoreRequest) => {
  try {
    handleRequest(request);
  } catch (error) {
    if (error instanceof DataDirectoryOwned) reply({ kind: "owned" });
    else if (error instanceof BatonError) reply({ kind: "failed", message: error.message, isWhole: true });
    else reply({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
  }
  if (request.kind !== "commit") return;
  checkpointAndReserve("busy");
  clearTimeout(idleTimer);
  idleTimer = setTimeout(checkpointAndReserve, idleMs, "idle");
});

export type KeeperStoreRequest =
  | { readonly kind: "open"; readonly dataDir: string }
  | { readonly kind: "load" }
  | { readonly kind: "confirm" }
  | { readonly kind: "commit"; readonly changes: Uint8Array }
  | { readonly kind: "close" };

export type KeeperStoreReply =
  /** One part of the loaded data; `done` follows. */
  | { readonly kind: "piece"; readonly bytes: Uint8Array }
  | { readonly kind: "done" }
  | { readonly kind: "owned" }
  /** `isWhole`: the message is a complete sentence about data that must not be used. */
  | { readonly kind: "failed"; readonly message: string; readonly isWhole?: boolean };

/** The storage thread: it waits for the disk so that the keeper does not. Executes one request at a time, in order. */
import { StoragePort } from "../../storage/storage_thread.ts";
import { storageError } from "../../storage/storage_error.ts";
import { KeeperDatabase } from "./keeper_database.ts";
import { describeData } from "./stored_records.ts";

const idleMs = 200;

let dataDir = "";
let database: KeeperDatabase;
let idleTimer: ReturnType<typeof setTimeout> | undefined;

const calls = {
  open: (folder: string) => {
    dataDir = folder;
    database = new KeeperDatabase(folder);
  },
  load: () => {
    for (const bytes of database.load()) port.emit(bytes);
  },
  confirmOwner: () => database.confirmOwner(),
  commit: (changes: Uint8Array) => database.commit(changes),
  close: () => {
    clearTimeout(idleTimer);
    database.close();
  },
};

export type KeeperStoreCalls = typeof calls;

const port: StoragePort<KeeperStoreCalls, Uint8Array> = new StoragePort({
  calls,
  errorOf: (error) => storageError(describeData(dataDir), error),
  // A call that fails has changed nothing: the keeper reads the data again and continues.
  isRefusal: () => true,
  after: (method) => {
    if (method !== "commit") return;
    checkpointAndReserve("busy");
    clearTimeout(idleTimer);
    idleTimer = setTimeout(checkpointAndReserve, idleMs, "idle");
  },
});

function checkpointAndReserve(occasion: "idle" | "busy"): void {
  try {
    database.checkpoint(occasion);
    if (occasion === "idle") database.reserveLog();
  } catch {
    // The disk is full, or another process reads. The commits are in the log, and the next attempt follows soon.
  }
}

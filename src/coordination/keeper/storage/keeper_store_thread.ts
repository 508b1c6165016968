/**
 * The storage thread of a keeper. It waits for the disk, so that the main thread does not have to. Executes one request
 * at a time, in order.
 */
import { storageError } from "../../../base/storage/storage_error.ts";
import { type StorageParentPort, StorageThreadCallRunner } from "../../../base/storage/storage_thread.ts";
import type { KeeperDatabase } from "./keeper_database.ts";
import { describeKeeperData } from "./keeper_rows.ts";

const idleMs = 200;

type KeeperRows = Pick<
  KeeperDatabase,
  "load" | "confirmOwner" | "commit" | "room" | "checkpoint" | "reserveLog" | "close"
>;

export interface KeeperStoreThreadOptions {
  /** Opens the rows of a data directory, as KeeperDatabase does. */
  readonly openRows: (dataDir: string) => KeeperRows;
  /** The port to the main thread; Node's `parentPort` by default. */
  readonly parent?: StorageParentPort;
}

export type KeeperStoreCalls = ReturnType<typeof serveKeeperStore>;

/** Executes the calls of a KeeperStore until the thread ends. */
export function serveKeeperStore({ openRows, ...ports }: KeeperStoreThreadOptions) {
  let dataDir = "";
  let rows: KeeperRows;
  let idleTimer: ReturnType<typeof setTimeout> | undefined;

  const checkpointAndReserve = (occasion: "idle" | "busy"): void => {
    try {
      rows.checkpoint(occasion);
      if (occasion === "idle") rows.reserveLog();
    } catch {
      // The disk is full, or another process is reading. The commits are safe in the log, and the next attempt follows
      // soon.
    }
  };
  const calls = {
    open: (folder: string) => {
      dataDir = folder;
      rows = openRows(folder);
    },
    load: () => {
      for (const bytes of rows.load()) port.emit(bytes);
    },
    confirmOwner: () => rows.confirmOwner(),
    commit: (changes: Uint8Array) => {
      rows.commit(changes);
      return rows.room();
    },
    room: () => rows.room(),
    close: () => {
      clearTimeout(idleTimer);
      rows.close();
    },
  };
  const port = new StorageThreadCallRunner<typeof calls, Uint8Array>({
    ...ports,
    calls,
    errorOf: (error) => storageError(describeKeeperData(dataDir), error),
    // A failed call has changed nothing, so the keeper reads the data again and continues.
    isRefusal: () => true,
    after: (method) => {
      if (method !== "commit") return;
      checkpointAndReserve("busy");
      clearTimeout(idleTimer);
      idleTimer = setTimeout(checkpointAndReserve, idleMs, "idle");
    },
  });
  return calls;
}

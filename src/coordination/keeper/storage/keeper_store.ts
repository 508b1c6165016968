/**
 * Gives the main thread of a keeper access to its data. A storage thread reads and writes the data
 * (keeper_store_thread.ts).
 */
import { Worker } from "node:worker_threads";
import { errorMessage } from "../../../base/errors.ts";
import { StorageThread, type StorageWorker } from "../../../base/storage/storage_thread.ts";
import { storageError } from "../../../base/storage/storage_error.ts";
import type { KeeperStoreCalls } from "./keeper_store_thread.ts";
import { decodeKeeperNode, decodeKeeperRows, decodeKeeperSession, describeKeeperData } from "./keeper_rows.ts";
import type { KeeperDataPiece } from "../state/keeper_state.ts";

export function startKeeperStoreThread(): StorageWorker {
  return new Worker(new URL("./keeper_store_worker.ts", import.meta.url));
}

export class KeeperStore {
  readonly #dataDir: string;
  readonly #thread: StorageThread<KeeperStoreCalls, Uint8Array>;
  /** Receives encoded rows while the data is being loaded. */
  #onPiece = (_: Uint8Array) => {};

  private constructor(dataDir: string, worker: StorageWorker) {
    this.#dataDir = dataDir;
    const onEvent = (piece: Uint8Array) => this.#onPiece(piece);
    this.#thread = new StorageThread(worker, { what: describeKeeperData(dataDir), onEvent });
  }

  /**
   * Takes ownership of a data directory. Rejects with LOCK_BUSY if another keeper owns the directory, with CONFIG if
   * its files were truncated or have another format, or with IO if it cannot be read or written.
   */
  static async open(dataDir: string, startThread = startKeeperStoreThread): Promise<KeeperStore> {
    const store = new KeeperStore(dataDir, startThread());
    await store.#thread.open(dataDir);
    return store;
  }

  /** Passes all stored data to `receive` in parts, parents before their children. Rejects with IO for damage. */
  async load(receive: (piece: KeeperDataPiece) => void): Promise<void> {
    let damage: unknown = null;
    this.#onPiece = (bytes) => {
      try {
        const { zxid, nodes, sessions } = decodeKeeperRows(bytes);
        receive({ zxid, nodes: nodes.map(decodeKeeperNode), sessions: sessions.map(decodeKeeperSession) });
      } catch (error) {
        damage ??= error;
      }
    };
    await this.#thread.call("load");
    if (damage !== null) throw storageError(describeKeeperData(this.#dataDir), new Error(errorMessage(damage)));
  }

  /** Rejects with LOCK_BUSY if another keeper has opened the same data since this keeper opened it. */
  confirmOwner(): Promise<void> {
    return this.#thread.call("confirmOwner");
  }

  /**
   * Stores the changes. When all changes are on the disk, resolves with the result of `room`. Rejects as `confirmOwner`
   * does, or with IO; then none of the changes are stored.
   */
  commit(changes: Uint8Array): Promise<number | null> {
    return this.#thread.call("commit", changes);
  }

  /** Returns the number of bytes that nodes may still take on the disk; null if the space was not measured again. */
  room(): Promise<number | null> {
    return this.#thread.call("room");
  }

  /** Gives up the data directory, after all earlier requests. */
  close(): Promise<void> {
    return this.#thread.close();
  }
}

/** The client side of the storage thread (keeper_store_worker.ts), which executes requests in order. */
import { Worker } from "node:worker_threads";
import { BatonError, messageOf } from "../../errors.ts";
import type { KeeperStoreReply, KeeperStoreRequest } from "./keeper_store_worker.ts";
import { decodeRows, nodeOf, sessionOf } from "./stored_records.ts";
import type { StoredPiece } from "../state/keeper_state.ts";

interface PendingCall {
  readonly piece?: (bytes: Uint8Array) => void;
  readonly done: () => void;
  readonly failed: (error: BatonError) => void;
}

export class KeeperStore {
  readonly #dataDir: string;
  readonly #worker: Worker;
  readonly #waiting: PendingCall[] = [];
  #broken: BatonError | null = null;

  private constructor(dataDir: string) {
    this.#dataDir = dataDir;
    this.#worker = new Worker(new URL("./keeper_store_worker.ts", import.meta.url));
    this.#worker.on("message", (reply: KeeperStoreReply) => this.#received(reply));
    this.#worker.on("error", (error) => this.#break(error.message));
    this.#worker.on("exit", () => this.#break("its thread ended"));
  }

  /**
   * Takes ownership of a data directory. Rejects with LOCK_BUSY when another keeper owns it, with CONFIG when its files were
   * truncated, with IO when it cannot be read or written.
   */
  static async open(dataDir: string): Promise<KeeperStore> {
    const store = new KeeperStore(dataDir);
    try {
      await store.#request({ kind: "open", dataDir });
      return store;
    } catch (error) {
      await store.#worker.terminate();
      throw error;
    }
  }

  /** Passes all stored data to `receive` in parts, parents before their children. Rejects with IO for damage. */
  async load(receive: (piece: StoredPiece) => void): Promise<void> {
    let damage: unknown = null;
    await this.#request({ kind: "load" }, (bytes) => {
      try {
        const { zxid, nodes, sessions } = decodeRows(bytes);
        receive({ zxid, nodes: nodes.map(nodeOf), sessions: sessions.map(sessionOf) });
      } catch (error) {
        damage ??= error;
      }
    });
    if (damage !== null) throw this.#error(messageOf(damage));
  }

  /** Rejects with LOCK_BUSY when another keeper has opened the same data since. */
  confirmOwner(): Promise<void> {
    return this.#request({ kind: "confirm" });
  }

  /** Resolves when all changes are on the disk. Rejects, like `confirmOwner` or with IO, when none of them are. */
  commit(changes: Uint8Array): Promise<void> {
    return this.#request({ kind: "commit", changes });
  }

  /** Gives up the data directory after all earlier requests. */
  async close(): Promise<void> {
    try {
      await this.#request({ kind: "close" });
    } finally {
      await this.#worker.terminate();
    }
  }

  #request(request: KeeperStoreRequest, piece?: (bytes: Uint8Array) => void): Promise<void> {
    if (this.#broken !== null) return Promise.reject(this.#broken);
    return new Promise((done, failed) => {
      this.#waiting.push(piece === undefined ? { done, failed } : { piece, done, failed });
      this.#worker.postMessage(request);
    });
  }

  #received(reply: KeeperStoreReply): void {
    if (reply.kind === "piece") {
      this.#waiting[0]?.piece?.(reply.bytes);
      return;
    }
    const waiting = this.#waiting.shift();
    if (reply.kind === "done") waiting?.done();
    else if (reply.kind === "failed") {
      waiting?.failed(reply.isWhole ? new BatonError("CONFIG", reply.message) : this.#error(reply.message));
    } else waiting?.failed(new BatonError("LOCK_BUSY", `Another keeper owns the data directory ${this.#dataDir}`));
  }

  #break(message: string): void {
    this.#broken ??= this.#error(message);
    for (const waiting of this.#waiting.splice(0)) waiting.failed(this.#broken);
  }

  #error(message: string): BatonError {
    return new BatonError("IO", `The keeper's data in ${this.#dataDir} cannot be read or written: ${message}`);
  }
}

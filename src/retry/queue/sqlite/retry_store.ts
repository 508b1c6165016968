/**
 * A message store for services. It sends calls to a thread that waits for the disk (retry_store_thread.ts). A call
 * resolves when its transaction is durable. `close` ends the thread.
 */
import { Worker } from "node:worker_threads";
import { StorageThread, type StorageWorker } from "../../../base/storage/storage_thread.ts";
import type { StoreRules } from "../store_rules.ts";
import type { RetryStoreCalls } from "./retry_store_thread.ts";
import type { ServiceStore, StoreHooks, StoreMethod, StoreMethods } from "../store_methods.ts";

export class RetryStore implements ServiceStore {
  readonly folder: string;
  readonly #hooks: StoreHooks;
  readonly #thread: StorageThread<RetryStoreCalls, string>;

  private constructor(folder: string, hooks: StoreHooks, worker: StorageWorker) {
    this.folder = folder;
    this.#hooks = hooks;
    this.#thread = new StorageThread(worker, {
      what: `The message store in ${folder}`,
      onEvent: (sentence) => hooks.onDamage?.(sentence),
      onBroken: (error) => hooks.onBroken?.(error),
    });
  }

  static async open(
    folder: string,
    { rules, hooks = {}, mustExist = false, startThread = startWorker }: {
      readonly rules: StoreRules;
      readonly hooks?: StoreHooks;
      readonly mustExist?: boolean;
      readonly startThread?: () => StorageWorker;
    },
  ): Promise<RetryStore> {
    const store = new RetryStore(folder, hooks, startThread());
    await store.#thread.open(folder, { rules, mustExist });
    return store;
  }

  /**
   * Calls a method of the store. Resolves when the change is on the disk. After STORE_FULL or LOCK_BUSY, nothing was
   * changed; after IO, the result is unknown.
   */
  call<Name extends StoreMethod>(
    method: Name,
    ...values: Parameters<StoreMethods[Name]>
  ): Promise<ReturnType<StoreMethods[Name]>> {
    return this.#thread.callTogether("call", method, ...values) as Promise<ReturnType<StoreMethods[Name]>>;
  }

  checkForChanges(): void {
    this.#thread.call("hasChanged").then(
      (hasChanged) => hasChanged && this.#hooks.onChanged?.(),
      () => {}, // `onBroken` reports the failure of the store
    );
  }

  async close(): Promise<void> {
    await this.#thread.close().catch(() => {}); // acknowledged changes are on the disk already
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function startWorker(): StorageWorker {
  return new Worker(new URL("./retry_store_worker.ts", import.meta.url));
}

/** The storage thread, which waits for the disk on behalf of a service. Calls that arrive during a commit become the next transaction. */
import type { BatonError } from "../../errors.ts";
import { StoragePort } from "../../storage/storage_thread.ts";
import { RetryDatabase, storeError } from "./retry_database.ts";
import type { StoreRules } from "./retry_engine.ts";
import { type StoreMethods, storeMethods } from "./store_methods.ts";

let database: RetryDatabase;
let folder = "";

interface OpenOptions {
  readonly rules: StoreRules;
  readonly mustExist: boolean;
}

const ownCalls = {
  open: (opened: string, { rules, mustExist }: OpenOptions) => {
    folder = opened;
    database = new RetryDatabase(folder, { mustExist });
    database.damage.onFound = (sentence) => port.emit(sentence);
    Object.assign(ownCalls, storeMethods(database, rules));
  },
  /** Whether another process has written since the last call. */
  hasChanged: () => database.hasChanged(),
  close: () => database.close(),
};

export type RetryStoreCalls = typeof ownCalls & StoreMethods;

const port: StoragePort<RetryStoreCalls, string> = new StoragePort({
  calls: ownCalls as RetryStoreCalls, // complete when the store is open
  errorOf: (error) => storeError(error, folder),
  together: (work) => {
    try {
      return database.transaction(work);
    } catch (error) {
      // Waits for other processes that read; therefore the refusals are sent first.
      if ((error as BatonError).code === "STORE_FULL") queueMicrotask(() => port.run(() => database.truncateLog()));
      throw error;
    }
  },
});

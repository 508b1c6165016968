/**
 * The storage thread, which waits for the disk on behalf of a service. Calls that arrive during a commit become the
 * next transaction.
 */
import type { BatonError } from "../../../base/errors.ts";
import { type StorageParentPort, StorageThreadCallRunner } from "../../../base/storage/storage_thread.ts";
import { type OpenRetryDatabase, RetryDatabase, toRetryStoreError } from "./retry_database.ts";
import { runStepsNow } from "../../../base/support/steps.ts";
import { RetryEngine } from "../retry_engine.ts";
import type { Claim, StoreMethod, StoreMethods } from "../store_methods.ts";
import type { StoreRules } from "../store_rules.ts";
import { SqliteRows } from "./sqlite_rows.ts";

interface OpenOptions {
  readonly rules: StoreRules;
  readonly mustExist: boolean;
}

export type RetryStoreCalls = {
  readonly call: (method: StoreMethod, ...values: unknown[]) => unknown;
  readonly open: (folder: string, options: OpenOptions) => void;
  readonly hasChanged: () => boolean;
  readonly close: () => void;
};

export interface RetryStoreThreadOptions {
  /** The thread's side of the connection; by default `parentPort`. */
  readonly parent?: StorageParentPort;
  readonly openDatabase?: OpenRetryDatabase;
}

/** Answers the calls of a RetryStore until the thread ends. */
export function serveRetryStore({
  openDatabase = (folder, options) => new RetryDatabase(folder, options),
  ...ports
}: RetryStoreThreadOptions = {}): void {
  let database: RetryDatabase;
  let engine: RetryEngine;
  let folder = "";
  const calls: RetryStoreCalls = {
    call: (method, ...values) => runStepsNow(engine.call(method, ...values as Parameters<StoreMethods[StoreMethod]>)),
    open: (opened, { rules, mustExist }) => {
      folder = opened;
      database = openDatabase(folder, { mustExist });
      database.damage.onFound = (sentence) => port.emit(sentence);
      engine = new RetryEngine(new SqliteRows(database, rules), rules);
    },
    hasChanged: () => database.hasChanged(),
    close: () => database.close(),
  };
  const port: StorageThreadCallRunner<RetryStoreCalls, string> = new StorageThreadCallRunner({
    ...ports,
    calls,
    errorOf: (error) => toRetryStoreError(error, folder),
    buffersOf: claimedBodies,
    together: (work) => {
      let isFull = false;
      try {
        return database.transaction(work);
      } catch (error) {
        isFull = (error as BatonError).code === "STORE_FULL";
        throw error;
      } finally {
        // Freeing space may have to wait for other processes that read. Therefore refusals are sent first.
        if (isFull || database.wantsRoom) queueMicrotask(() => port.run(() => database.makeRoom()));
      }
    },
  });
}

/**
 * Returns the buffers of the claimed bodies. They are moved to the other thread, not copied, because copying a large
 * body takes as long as a try.
 */
function claimedBodies(value: unknown): ArrayBuffer[] {
  const { messages } = (value ?? {}) as Partial<Claim>;
  if (!Array.isArray(messages)) return [];
  return (messages as Claim["messages"]).flatMap(({ body: { buffer, byteLength } }) =>
    byteLength > 0 && buffer.byteLength === byteLength ? [buffer as ArrayBuffer] : []
  );
}

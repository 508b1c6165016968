/** A message store for a short-lived command. It has no thread. */
import { type OpenRetryDatabase, RetryDatabase, toRetryStoreError } from "./retry_database.ts";
import { runStepsNow } from "../../../base/support/steps.ts";
import { RetryEngine } from "../retry_engine.ts";
import type { StoreRules } from "../store_rules.ts";
import type { CommandStore, StoreMethod, StoreMethods } from "../store_methods.ts";
import { SqliteRows } from "./sqlite_rows.ts";

/** A store whose calls are finished before they return their promises. */
export class DirectStore implements CommandStore {
  readonly #database: RetryDatabase;
  readonly #engine: RetryEngine;

  /** Opens the store. Throws the errors of RetryDatabase, or IO if the name of the store cannot be read. */
  constructor(
    folder: string,
    rules: StoreRules,
    { mustExist, openDatabase = (...values) => new RetryDatabase(...values) }: {
      readonly mustExist: boolean;
      readonly openDatabase?: OpenRetryDatabase;
    },
  ) {
    this.#database = openDatabase(folder, { mustExist });
    try {
      this.#engine = new RetryEngine(new SqliteRows(this.#database, rules), rules);
    } catch (error) {
      this.#database.close();
      throw toRetryStoreError(error, folder);
    }
  }

  /** Runs a transaction. After STORE_FULL or LOCK_BUSY nothing was changed; after IO the result is unknown. */
  // deno-lint-ignore require-await -- see above
  async call<Name extends StoreMethod>(
    method: Name,
    ...values: Parameters<StoreMethods[Name]>
  ): Promise<ReturnType<StoreMethods[Name]>> {
    const run = () => this.#database.transaction(() => runStepsNow(this.#engine.call(method, ...values)));
    try {
      return run();
    } catch (error) {
      if (!this.#database.wantsRoom) throw error;
      this.#database.makeRoom();
      return run();
    }
  }

  /** Reads. Changes nothing, and does not wait for other processes. */
  // deno-lint-ignore require-await -- see above
  async read<Name extends StoreMethod>(
    method: Name,
    ...values: Parameters<StoreMethods[Name]>
  ): Promise<ReturnType<StoreMethods[Name]>> {
    return this.#database.readSnapshot(() => runStepsNow(this.#engine.call(method, ...values)));
  }

  // deno-lint-ignore require-await -- see above
  async [Symbol.asyncDispose](): Promise<void> {
    this.#database.close();
  }
}

/** A message store for a short-lived command, without a thread. */
import { type OpenRetryDatabase, RetryDatabase, storeError } from "./retry_database.ts";
import type { StoreRules } from "../store_rules.ts";
import type { StoreMethod, StoreMethods } from "../store_methods.ts";
import { storeMethods } from "./sqlite_store_methods.ts";

export class DirectStore implements Disposable {
  readonly #database: RetryDatabase;
  readonly #methods: StoreMethods;

  /** Throws as RetryDatabase does, and IO if the name of the store cannot be read. */
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
      this.#methods = storeMethods(this.#database, rules);
    } catch (error) {
      this.#database.close();
      throw storeError(error, folder);
    }
  }

  /** Durable when it returns. Throws the method's error, STORE_FULL and LOCK_BUSY: nothing was changed; IO: unknown. */
  call<Name extends StoreMethod>(
    method: Name,
    ...values: Parameters<StoreMethods[Name]>
  ): ReturnType<StoreMethods[Name]> {
    const run = () => this.#database.transaction(() => this.#invoke(method, values));
    try {
      return run();
    } catch (error) {
      if (!this.#database.wantsRoom) throw error;
      this.#database.makeRoom();
      return run();
    }
  }

  /** Changes nothing and does not wait for other processes. */
  read<Name extends StoreMethod>(
    method: Name,
    ...values: Parameters<StoreMethods[Name]>
  ): ReturnType<StoreMethods[Name]> {
    return this.#database.readSnapshot(() => this.#invoke(method, values));
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }

  #invoke<Name extends StoreMethod>(method: Name, values: Parameters<StoreMethods[Name]>) {
    const call = this.#methods[method] as (...values: Parameters<StoreMethods[Name]>) => ReturnType<StoreMethods[Name]>;
    return call(...values);
  }
}

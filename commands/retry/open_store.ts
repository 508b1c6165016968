/** A message store for a command that ends soon: without a thread. */
import { RetryDatabase, storeError } from "../../src/retry/queue/retry_database.ts";
import type { StoreRules } from "../../src/retry/queue/retry_engine.ts";
import { type StoreMethod, type StoreMethods, storeMethods } from "../../src/retry/queue/store_methods.ts";

export class OpenStore implements Disposable {
  readonly #database: RetryDatabase;
  readonly #methods: StoreMethods;

  /** Throws as RetryDatabase does, and IO where the store does not say whose ids it gives. */
  constructor(folder: string, rules: StoreRules, { mustExist }: { readonly mustExist: boolean }) {
    this.#database = new RetryDatabase(folder, { mustExist });
    try {
      this.#methods = storeMethods(this.#database, rules);
    } catch (error) {
      this.#database.close();
      throw storeError(error, folder);
    }
  }

  /** Durable when it returns. Throws the method's refusal, STORE_FULL and LOCK_BUSY: nothing was done; IO: unknown. */
  call<Name extends StoreMethod>(
    method: Name,
    ...values: Parameters<StoreMethods[Name]>
  ): ReturnType<StoreMethods[Name]> {
    return this.#database.transaction(() => this.#invoke(method, values));
  }

  /** Changes nothing, and waits for nobody. */
  ask<Name extends StoreMethod>(
    method: Name,
    ...values: Parameters<StoreMethods[Name]>
  ): ReturnType<StoreMethods[Name]> {
    return this.#database.snapshot(() => this.#invoke(method, values));
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }

  #invoke<Name extends StoreMethod>(method: Name, values: Parameters<StoreMethods[Name]>) {
    const call = this.#methods[method] as (...values: Parameters<StoreMethods[Name]>) => ReturnType<StoreMethods[Name]>;
    return call(...values);
  }
}

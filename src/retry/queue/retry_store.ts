/**
 * A message store for services: calls are sent to a thread that waits for the disk. A call resolves when its transaction is durable. Owns
 * the thread; `close` ends it.
 */
import { Worker } from "node:worker_threads";
import { BatonError, type ErrorCode, messageOf } from "../../errors.ts";
import type { StoreRules } from "./retry_engine.ts";
import type {
  StoreCall,
  StoreCallResult,
  StoreMethod,
  StoreMethods,
  StoreRequest,
  StoreThreadMessage,
} from "./store_methods.ts";

export interface StoreHooks {
  /** Another process may have written to the store. */
  readonly onChanged?: () => void;
  /** The disk failed. Called once. Every later call is rejected, and the result of calls in progress is unknown. */
  readonly onBroken?: (error: BatonError) => void;
  /** Called once for each damaged row, with a sentence. */
  readonly onDamage?: (sentence: string) => void;
}

interface PendingStoreCall {
  readonly done: (value: unknown) => void;
  readonly failed: (error: BatonError) => void;
}

export class RetryStore implements AsyncDisposable {
  readonly folder: string;
  readonly #worker: Worker;
  readonly #hooks: StoreHooks;
  readonly #calls = new Map<number, PendingStoreCall>();
  /** Calls that were made while the thread was busy. They are sent together when it responds, and become one transaction. */
  #unsent: StoreCall[] = [];
  #next = 0;
  #broken: BatonError | null = null;
  #opening: PendingStoreCall | null = null;
  #closing: (() => void) | null = null;

  private constructor(folder: string, hooks: StoreHooks) {
    this.folder = folder;
    this.#hooks = hooks;
    this.#worker = new Worker(new URL("./retry_store_worker.ts", import.meta.url));
    this.#worker.on("message", (message: StoreThreadMessage) => this.#handleMessage(message));
    this.#worker.on("error", (error) => this.#break(this.#ioError(messageOf(error))));
    this.#worker.on("exit", () => this.#break(this.#ioError("its thread ended")));
  }

  /** Rejects as RetryDatabase throws. */
  static async open(
    folder: string,
    { rules, hooks = {}, mustExist = false }: {
      readonly rules: StoreRules;
      readonly hooks?: StoreHooks;
      readonly mustExist?: boolean;
    },
  ): Promise<RetryStore> {
    const store = new RetryStore(folder, hooks);
    try {
      await new Promise((done, failed) => {
        store.#opening = { done, failed };
        store.#post({ kind: "open", folder, rules, mustExist });
      });
      return store;
    } catch (error) {
      await store.#end();
      throw error;
    }
  }

  /**
   * Resolves when the change is on the disk. Rejects with the method's error, STORE_FULL and LOCK_BUSY: nothing was changed; IO: unknown.
   */
  call<Name extends StoreMethod>(
    method: Name,
    ...values: Parameters<StoreMethods[Name]>
  ): Promise<ReturnType<StoreMethods[Name]>> {
    if (this.#broken !== null) return Promise.reject(this.#broken);
    return new Promise((resolve, failed) => {
      const id = this.#next++;
      this.#calls.set(id, { done: (value) => resolve(value as ReturnType<StoreMethods[Name]>), failed });
      this.#unsent.push({ id, method, values });
      if (this.#calls.size === 1) setImmediate(() => this.#send());
    });
  }

  /** Calls `onChanged` if another process has written since the last call. */
  checkForChanges(): void {
    this.#post({ kind: "look" });
  }

  /** Waits for calls in progress. */
  async close(): Promise<void> {
    if (this.#broken === null) {
      await new Promise<void>((done) => {
        this.#closing = done;
        this.#post({ kind: "close" });
      });
    }
    await this.#end();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #send(): void {
    const calls = this.#unsent;
    this.#unsent = [];
    if (calls.length > 0 && this.#broken === null) this.#worker.postMessage({ kind: "calls", calls });
  }

  /** Sends a request after the calls that were made before. */
  #post(request: StoreRequest): void {
    this.#send();
    if (this.#broken === null) this.#worker.postMessage(request);
  }

  #handleMessage(message: StoreThreadMessage): void {
    switch (message.kind) {
      case "opened":
        this.#opening?.done(undefined);
        this.#opening = null;
        break;
      case "changed":
        this.#hooks.onChanged?.();
        break;
      case "results":
        for (const result of message.results) this.#settle(result);
        // Waits for the end of this turn: callers that just got a result often make another call.
        if (this.#calls.size === this.#unsent.length && this.#unsent.length > 0) setImmediate(() => this.#send());
        break;
      case "damage":
        this.#hooks.onDamage?.(message.sentence);
        break;
      case "broken":
        this.#break(new BatonError(message.code as ErrorCode, message.message));
        break;
      case "closed":
        this.#closing?.();
        break;
    }
  }

  #settle(result: StoreCallResult): void {
    const call = this.#calls.get(result.id);
    this.#calls.delete(result.id);
    if (result.kind === "returned") call?.done(result.value);
    else call?.failed(new BatonError(result.code as ErrorCode, result.message));
  }

  #break(error: BatonError): void {
    if (this.#broken !== null) return;
    this.#broken = error;
    const opening = this.#opening;
    for (const { failed } of this.#calls.values()) failed(error);
    this.#calls.clear();
    this.#closing?.();
    if (opening !== null) opening.failed(error);
    else if (this.#closing === null) this.#hooks.onBroken?.(error);
  }

  async #end(): Promise<void> {
    this.#broken ??= this.#ioError("it was closed");
    await this.#worker.terminate();
  }

  #ioError(message: string): BatonError {
    return new BatonError("IO", `The message store in ${this.folder} cannot be read or written: ${message}`);
  }
}

/** One operation on its way: queued, sent, and settled exactly once. */
import { onAbort } from "../support/abort.ts";
import type { ByteReader } from "../wire/bytes.ts";
import type { ZooKeeperErrorName } from "../wire/jute/zookeeper_error_codes.ts";
import type { Reply } from "./zookeeper_link.ts";
import { type Deed, failure, ZooKeeperError } from "./zookeeper_error.ts";

/** An operation as the client states it. */
export interface Call<T> {
  /** For messages. */
  readonly deed: Deed;
  readonly code: number;
  readonly body: Uint8Array;
  /** Makes the result of the reply, or throws what to reject with. */
  answer(err: number, reader: ByteReader): T;
}

export class Request<T> implements Reply {
  readonly code: number;
  readonly body: Uint8Array;
  /** When it must not be sent any more, on the clock. */
  readonly deadlineMs: number;
  readonly promise: Promise<T>;
  readonly #call: Call<T>;
  readonly #resolve: (value: T) => void;
  readonly #reject: (error: unknown) => void;
  #offAbort: () => void = () => {};
  #settled = false;

  constructor(call: Call<T>, deadlineMs: number, signal?: AbortSignal) {
    this.#call = call;
    this.code = call.code;
    this.body = call.body;
    this.deadlineMs = deadlineMs;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.promise = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    if (signal !== undefined) this.#offAbort = onAbort(signal, (reason) => this.#settle(() => reject(reason)));
  }

  /** Settled already: answered, failed, or given up by the caller. */
  get settled(): boolean {
    return this.#settled;
  }

  answer(err: number, reader: ByteReader): void {
    if (this.#settled) return;
    let value: T;
    try {
      value = this.#call.answer(err, reader);
    } catch (error) {
      if (error instanceof ZooKeeperError) return this.#settle(() => this.#reject(error));
      this.lose(error instanceof Error ? error : null);
      throw error; // a reply that cannot be read: the connection makes no sense any more
    }
    this.#settle(() => this.#resolve(value));
  }

  lose(cause: Error | null): void {
    if (cause === null) this.fail("CONNECTIONLOSS");
    else this.fail("CONNECTIONLOSS", cause, `the connection was lost before the answer came (${cause.message})`);
  }

  fail(reason: ZooKeeperErrorName, cause?: unknown, why?: string): void {
    if (this.#settled) return;
    this.#settle(() => this.#reject(failure(this.#call.deed, reason, why === undefined ? { cause } : { cause, why })));
  }

  #settle(act: () => void): void {
    this.#settled = true;
    this.#offAbort();
    act();
  }
}

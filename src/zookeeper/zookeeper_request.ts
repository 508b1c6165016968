/** One operation in progress: queued, sent, and settled exactly once. */
import { onAbort } from "../support/abort.ts";
import type { ByteReader } from "../wire/bytes.ts";
import type { ZooKeeperErrorName } from "../wire/jute/zookeeper_error_codes.ts";
import type { ReplyHandler } from "./zookeeper_link.ts";
import { localError, type OperationLabel, ZooKeeperError } from "./zookeeper_error.ts";

export interface OperationCall<T> {
  readonly label: OperationLabel;
  readonly code: number;
  readonly body: Uint8Array;
  /** Decodes the reply, or throws the error to reject with. */
  decode(err: number, reader: ByteReader): T;
}

export class ZooKeeperRequest<T> implements ReplyHandler {
  readonly code: number;
  readonly body: Uint8Array;
  /** The time after which it must not be sent, on the clock. */
  readonly deadlineMs: number;
  readonly #call: OperationCall<T>;
  readonly #result = Promise.withResolvers<T>();
  readonly promise = this.#result.promise;
  #offAbort: () => void = () => {};
  /** Whether the operation was answered, failed, or was cancelled by the caller. */
  settled = false;

  constructor(call: OperationCall<T>, deadlineMs: number, signal?: AbortSignal) {
    this.#call = call;
    this.code = call.code;
    this.body = call.body;
    this.deadlineMs = deadlineMs;
    this.#offAbort = onAbort(signal, (reason) => this.#settle(() => this.#result.reject(reason)));
  }

  received(err: number, reader: ByteReader): void {
    if (this.settled) return;
    let value: T;
    try {
      value = this.#call.decode(err, reader);
    } catch (error) {
      if (error instanceof ZooKeeperError) return this.#settle(() => this.#result.reject(error));
      this.connectionLost(error instanceof Error ? error : null);
      throw error; // the reply cannot be read, so the connection is not usable
    }
    this.#settle(() => this.#result.resolve(value));
  }

  connectionLost(cause: Error | null): void {
    if (cause === null) this.fail("CONNECTIONLOSS");
    else this.fail("CONNECTIONLOSS", cause, `the connection was lost before the response arrived (${cause.message})`);
  }

  fail(reason: ZooKeeperErrorName, cause?: unknown, why?: string): void {
    if (this.settled) return;
    this.#settle(() =>
      this.#result.reject(localError(this.#call.label, reason, why === undefined ? { cause } : { cause, why }))
    );
  }

  #settle(act: () => void): void {
    this.settled = true;
    this.#offAbort();
    act();
  }
}

/**
 * Topic stores in a real PostgreSQL for tests that call them synchronously: a thread runs them, and each call waits for
 * its result. So the same tests run over SQLite and over PostgreSQL.
 */
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from "node:worker_threads";
import { BatonError, type ErrorCode } from "../../../../src/base/errors.ts";
import type { TopicStoreOptions } from "../../../../src/pubsub/store/limits/topic_store_limits.ts";
import { PostgresServer } from "../../../support/postgres_server.ts";
import type { ThreadCall, ThreadReply } from "./postgres_stores_thread.ts";

/** The limit of one call, in milliseconds. */
const callMsMax = 60_000;

/** The limit of one wait for a signal, in milliseconds, after which the reply is looked for in any case. */
const signalWaitMs = 10;

export class PostgresStores implements AsyncDisposable {
  readonly #server: PostgresServer;
  readonly #worker: Worker;
  readonly #port: MessagePort;
  readonly #signal: Int32Array;
  /** Schemas that no store uses. */
  readonly #free: string[] = [];
  #schemas = 0;

  private constructor(server: PostgresServer) {
    this.#server = server;
    this.#signal = new Int32Array(new SharedArrayBuffer(4));
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    this.#worker = new Worker(new URL("./postgres_stores_thread.ts", import.meta.url), {
      workerData: { port: port2, url: server.url, signal: this.#signal },
      transferList: [port2],
    });
  }

  /** What these tests prove is not that a disk keeps what it was given. */
  static async start(): Promise<PostgresStores> {
    return new PostgresStores(await PostgresServer.start({ settings: ["fsync = off"] }));
  }

  takeSchema(): string {
    return this.#free.pop() ?? `store${++this.#schemas}`;
  }

  returnSchema(schema: string): void {
    this.#free.push(schema);
  }

  /** Calls the thread and waits for its reply. */
  call(call: ThreadCall, nowMs: number): ThreadReply {
    const until = performance.now() + callMsMax;
    this.#port.postMessage({ call, nowMs });
    for (;;) {
      const replies = Atomics.load(this.#signal, 0);
      const received = receiveMessageOnPort(this.#port) as { message: ThreadReply } | undefined;
      if (received !== undefined) return received.message;
      if (performance.now() >= until) {
        throw new Error(`${JSON.stringify(call).slice(0, 200)} took more than ${callMsMax} ms`);
      }
      // A wait may end without a reply, and a reply may be signalled shortly before it can be received.
      Atomics.wait(this.#signal, 0, replies, signalWaitMs);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#port.close();
    await this.#worker.terminate();
    await this.#server[Symbol.asyncDispose]();
  }
}

/** One store, as its driver uses it. */
export class PostgresStore {
  readonly #stores: PostgresStores;
  readonly #options: TopicStoreOptions;
  readonly #onReply: (reply: ThreadReply) => void;
  readonly #nowMs: () => number;
  readonly schema: string;

  constructor(stores: PostgresStores, options: TopicStoreOptions, { onReply, nowMs }: {
    readonly onReply: (reply: ThreadReply) => void;
    readonly nowMs: () => number;
  }) {
    this.#stores = stores;
    this.#options = options;
    this.#onReply = onReply;
    this.#nowMs = nowMs;
    this.schema = stores.takeSchema();
  }

  open(isNew: boolean): void {
    this.#call({ kind: "open", store: this.schema, options: this.#options, isNew });
  }

  close(): void {
    this.#call({ kind: "close", store: this.schema });
  }

  release(): void {
    this.#stores.returnSchema(this.schema);
  }

  sql(text: string): readonly Record<string, unknown>[] {
    return this.#call({ kind: "sql", store: this.schema, text }).value as Record<string, unknown>[];
  }

  /** An object of the store: its methods return when their steps have ended. */
  object<T extends object>(...path: string[]): T {
    return new Proxy({}, {
      get: (_, name) => {
        if (typeof name === "symbol") return undefined;
        const at = [...path, name];
        const { type, value } = this.#call({ kind: "get", store: this.schema, path: at });
        if (type === "object") return this.object(...at);
        if (type === "value") return value;
        return (...values: unknown[]) =>
          this.#call({ kind: "apply", store: this.schema, path: at, values: values.map(plain) }).value;
      },
    }) as T;
  }

  #call(call: ThreadCall): ThreadReply {
    const reply = this.#stores.call(call, this.#nowMs());
    this.#onReply(reply);
    if (reply.error === undefined) return reply;
    const { code, message } = reply.error;
    throw code === null ? new Error(message) : new BatonError(code as ErrorCode, message);
  }
}

/** Iterables are sent as lists. */
const plain = (value: unknown): unknown =>
  typeof value === "object" && value !== null && Symbol.iterator in value && !ArrayBuffer.isView(value)
    ? [...value as Iterable<unknown>]
    : value;

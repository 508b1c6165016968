/**
 * Serves a topic store in its thread. Executes the calls and the batches of the server in order, one after the other.
 */
import { StorageThreadCallRunner, type StorageThreadCallRunnerOptions } from "../../../base/storage/storage_thread.ts";
import type { TopicExportStep } from "../transfer/export_topic.ts";
import {
  type TopicStoreCalls,
  topicStoreCalls,
  type TopicStoreEvent,
  type TopicThreadCalls,
} from "./topic_store_messages.ts";

export type TopicStorePort = StorageThreadCallRunner<TopicThreadCalls, TopicStoreEvent>;

/** A topic store in its thread. A store in files returns results; a store in a database returns promises. */
export interface ServedTopicStore {
  readonly storeId: string;
  /**
   * Runs a call. If it throws a BatonError, it has changed nothing. After any other error, memory and store may differ.
   */
  call(method: keyof TopicStoreCalls, values: readonly unknown[]): unknown;
  afterCall(): void;
  /** Executes this batch, and the batches that arrive before its end. */
  executeBatches(bytes: Uint8Array): void | Promise<void>;
  /** Called when the checkpoint thread has copied most of the log. A store without files has no such thread. */
  checkpointed?(): void;
  close(): void | Promise<void>;
}

export interface TopicStorePortOptions extends
  Pick<
    StorageThreadCallRunnerOptions<TopicThreadCalls>,
    "requests" | "parent" | "errorOf" | "isRefusal" | "answerWhileBusy"
  > {
  /** Opens the store. The port is not used before `open` has returned. */
  readonly open: (port: TopicStorePort, opening: object) => ServedTopicStore | Promise<ServedTopicStore>;
}

export function serveTopicStorePort({ open, ...options }: TopicStorePortOptions): void {
  let store: ServedTopicStore;
  const opened = (served: ServedTopicStore) => {
    store = served;
    return store.storeId;
  };
  const calls = {
    open: (opening: object) => {
      const opens = open(port, opening);
      return opens instanceof Promise ? opens.then(opened) : opened(opens);
    },
    checkpointed: () => store.checkpointed?.(),
    close: () => store.close(),
    ...Object.fromEntries(topicStoreCalls.map((name) => [name, (...values: unknown[]) => store.call(name, values)])),
  };
  const port: TopicStorePort = new StorageThreadCallRunner({
    ...options,
    calls: calls as unknown as TopicThreadCalls,
    after: (method) => {
      if ((topicStoreCalls as readonly string[]).includes(method)) store.afterCall();
    },
    buffersOf,
    onBatch: (bytes) => store.executeBatches(bytes),
  });
}

/** Returns the buffer of an exported piece, so that the buffer is transferred instead of copied. */
function buffersOf(value: unknown): ArrayBuffer[] {
  const piece = (value as TopicExportStep | null | undefined)?.piece;
  return piece instanceof Uint8Array ? [piece.buffer as ArrayBuffer] : [];
}

/**
 * Retries as a library. They are a separate entry, because they need SQLite:
 *
 *     await using store = new MessageStore({ name: "orders" });
 *     await store.tryOrAdd(order, () => send(order));
 *     await store.process(({ body, signal }) => send(body, { signal }), { signal });
 */
import "./check_runtime.ts";

export {
  type AddedMessage,
  type AddMessageOptions,
  type MessageHandler,
  type MessageInfo,
  type MessageSelection,
  MessageStore,
  type MessageTry,
  type MessageWithBody,
} from "./message_store.ts";
export type { MessageStoreOptions, ProcessOptions, ProcessorReport } from "./message_store_options.ts";
export { PermanentFailure } from "../retry/targets/function_target.ts";
export type { DeathReason, MessageState } from "../retry/queue/message_life.ts";
export type { RetryPolicy } from "../retry/queue/retry_policy.ts";
export type { StateTotals } from "../retry/queue/stored_message.ts";

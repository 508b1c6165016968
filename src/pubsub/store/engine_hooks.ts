/** What a store's engine needs of the thread that it lives in. */
import type { StoreResponse } from "../../wire/pubsub/store_operations.ts";
import type { RefusedPuts } from "./refused_puts.ts";

export interface EngineHooks {
  /** Called when what it says is durable. */
  readonly answer: (answer: StoreResponse) => void;
  /** Milliseconds of the wall clock, to be stored with messages. */
  readonly wallClockMs: () => number;
  /** Something that an operator should know, once. */
  readonly warn?: (sentence: string) => void;
  /** Of this store, longer than an engine lives. */
  readonly refusedPuts: RefusedPuts;
}

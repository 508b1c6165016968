/** Functions and values that the engine of a topic store needs from its thread. */
import type { RefusedPuts } from "./refused_puts.ts";
import type { StoreResponse } from "./store_operations.ts";
import type { LostTopic } from "./topic_rows.ts";

export interface EngineHooks {
  /** Called when the response is durable. */
  readonly onResponse: (response: StoreResponse) => void;
  /** Wall-clock time in milliseconds, stored with messages. */
  readonly wallClockMs: () => number;
  /** Reports something to the operator, once. */
  readonly warn?: (sentence: string) => void;
  /** Outlives the engine, which is created again after a full disk. */
  readonly refusedPuts: RefusedPuts;
  /** A topic is no longer in memory, because its last commit failed: it must be opened again. */
  readonly onTopicLost?: (topic: string, lost: LostTopic) => void;
}

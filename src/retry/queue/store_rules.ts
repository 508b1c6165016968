/** The rules of a message store, from the settings of a command or a program. */
import type { LifeRules } from "./message_life.ts";
import type { NewLetters } from "./stored_message.ts";

export interface CapacityRules {
  /** The most bytes that the bodies of waiting, in-flight and dead messages may have together. */
  readonly maxBytes: number;
  readonly maxMessages: number;
}

export interface StoreRules extends LifeRules, CapacityRules {
  readonly letters: NewLetters;
}

/** The rules for commands that neither accept nor try messages. They are never applied. */
export const readOnlyRules: StoreRules = {
  policy: {
    maxRetries: 0,
    backoff: "fixed",
    intervalMs: 0,
    delaysMs: [],
    maxDelayMs: 0,
    jitter: "none",
    maxElapsedMs: null,
  },
  maxCrashes: 1,
  drops: false,
  letters: "open",
  maxBytes: 0,
  maxMessages: 0,
};

/** The rules of a message store, which the settings of a command or a program say. */
import type { LifeRules } from "./message_life.ts";

export interface CapacityRules {
  /** Maximum size of the bodies of waiting, in-flight and dead messages. */
  readonly maxBytes: number;
  readonly maxMessages: number;
}

export interface StoreRules extends LifeRules, CapacityRules {
  /** True: dead letters are forwarded to a sink. */
  readonly forwards: boolean;
}

/** Rules for commands that neither accept nor try messages. They are not used. */
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
  forwards: false,
  maxBytes: 0,
  maxMessages: 0,
};

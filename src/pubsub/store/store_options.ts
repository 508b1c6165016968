/** Limits that an operator can set for a topic store. Null: no limit. */
import { clientsPerTopicMax } from "./topic_store_limits.ts";

export interface StoreOptions {
  /** Undelivered messages of the slowest subscriber before puts are refused (FULL). */
  readonly maxPending: number | null;
  /** Bytes of a topic's messages before puts are refused (FULL). */
  readonly maxTopicBytes: number | null;
  /**
   * Retention: older messages are deleted even if a subscriber has not received them, by count, bytes or age. Only
   * whole rows are deleted, so slightly more is kept.
   */
  readonly retainMessages: number | null;
  readonly retainBytes: number | null;
  readonly retainMs: number | null;
  /** Bytes of the whole store. The free space of the file system is a limit as well. */
  readonly maxDiskBytes: number | null;
  /** Maximum number of clients per topic. */
  readonly clientsMax: number;
}

export const defaultStoreOptions: StoreOptions = {
  maxPending: null,
  maxTopicBytes: null,
  retainMessages: null,
  retainBytes: null,
  retainMs: null,
  maxDiskBytes: null,
  clientsMax: clientsPerTopicMax,
};

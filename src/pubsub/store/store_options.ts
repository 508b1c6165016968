/** What an operator may set of a topic store. null: no limit. */
import { clientsPerTopicMax } from "./topic_store_limits.ts";

export interface StoreOptions {
  /** Messages that a subscriber may leave behind before puts are refused (FULL). */
  readonly maxPending: number | null;
  /** What a topic's messages may take before puts are refused (FULL). */
  readonly maxTopicBytes: number | null;
  /** Older messages are given up, whoever has not had them: by number, bytes, age. Whole rows go, so somewhat more may stay. */
  readonly retainMessages: number | null;
  readonly retainBytes: number | null;
  readonly retainMs: number | null;
  /** What the whole store may take; the file system's own room counts as well. */
  readonly maxDiskBytes: number | null;
  /** Clients that a topic knows. */
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

/** The messages between a topic store and its storage thread: calls, requests of clients, and events. */
import type { ErrorCode } from "../../../base/errors.ts";
import type { TopicStoreOptions } from "../limits/topic_store_limits.ts";
import type { RunStepMethods } from "../../../base/support/steps.ts";
import type { TopicTransfer } from "../transfer/topic_transfer.ts";
import type { TopicMaintenance } from "../engine/topic_maintenance.ts";

/** The methods of `TopicTransfer` and `TopicMaintenance` that other threads call. */
const transferCalls = [
  "release",
  "releaseAll",
  "generation",
  "raiseGeneration",
  "isEmpty",
  "topics",
  "copiesOf",
  "create",
  "seal",
  "activate",
  "drop",
  "discard",
  "raiseBaseOffset",
  "setAside",
  "exportBegin",
  "exportNext",
  "exportEnd",
  "importBegin",
  "importPiece",
  "importDone",
  "importEnd",
] as const;
const maintenanceCalls = ["show", "forgetClient", "repair"] as const;
export const topicStoreCalls = [...transferCalls, ...maintenanceCalls, "statistics", "whyNotStored"] as const;

export type TopicStoreCalls =
  & RunStepMethods<Pick<TopicTransfer, typeof transferCalls[number]>>
  & RunStepMethods<Pick<TopicMaintenance, typeof maintenanceCalls[number]>>
  & {
    statistics: () => TopicStoreStatistics;
    /** Returns the reason why no message can be stored now; null if one can. Stores nothing. */
    whyNotStored: () => string | null;
  };

export interface TopicStoreStatistics {
  readonly topics: number;
  /** The used bytes of the database, and the used share of the disk limit that will be reached first, from 0 to 1. */
  readonly usedBytes: number;
  readonly diskShare: number;
  readonly full: string | null;
  readonly commits: number;
  readonly damages: number;
  /**
   * The number of topics that have lost messages, certainly or possibly, in a failover of a shared database since the
   * store was opened.
   */
  readonly losses: number;
  /** The largest used share of any topic's client capacity, from 0 to 1. Also the number of forgotten publishers. */
  readonly clientsShare: number;
  readonly clientsForgotten: number;
}

/** Kinds of requests in a batch: a held get, any other request, and the cancellation of a held get. */
export const storeRequestKinds = { held: 0, immediate: 1, cancel: 2 } as const;

/** The name of the database file in a data directory. */
export const topicDatabaseName = "topics.sqlite";

export interface TopicStoreOpening {
  readonly dataDir: string;
  /** The server's ID, as the sender of responses. */
  readonly server: string;
  readonly options: TopicStoreOptions;
  readonly acceptDamagedLog: boolean;
}

/** All calls to the storage thread. Requests of clients arrive in a `FrameBatch`, with `storeRequestKinds`. */
export type TopicThreadCalls = TopicStoreCalls & {
  /** Opens the store and returns its random id. */
  readonly open: (opening: object) => string;
  /** Tells the storage thread that the other thread has finished a checkpoint. */
  readonly checkpointed: () => void;
  readonly close: () => void;
};

export type TopicStoreEvent =
  /**
   * A `FrameBatch` of responses; their kinds are indexes of `statusCodes`. `batches` is the number of finished request
   * batches.
   */
  | { readonly kind: "responses"; readonly bytes: Uint8Array; readonly batches: number }
  | { readonly kind: "problem"; readonly code: ErrorCode; readonly message: string }
  | { readonly kind: "checkpoint" }
  | { readonly kind: "topic lost"; readonly topic: string };

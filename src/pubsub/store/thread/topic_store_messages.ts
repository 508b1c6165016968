/** Messages between a topic store and its threads. */
import type { ErrorCode } from "../../../base/errors.ts";
import type { TopicStoreOptions } from "../limits/topic_store_limits.ts";
import type { RunStoreMethods } from "../rows/store_steps.ts";
import type { TopicTransfer } from "../transfer/topic_transfer.ts";
import type { TopicMaintenance } from "../engine/topic_maintenance.ts";

/** Methods of `TopicTransfer`, and of `TopicMaintenance`, that other threads call. */
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

/** Calls with one result: their arguments and results. */
export type TopicStoreCalls =
  & RunStoreMethods<Pick<TopicTransfer, typeof transferCalls[number]>>
  & RunStoreMethods<Pick<TopicMaintenance, typeof maintenanceCalls[number]>>
  & {
    statistics: () => TopicStoreStatistics;
    /** Why no message can be stored now; null: one can. Writes nothing that stays. */
    whyNotStored: () => string | null;
  };

export interface TopicStoreStatistics {
  readonly topics: number;
  /** Used bytes of the database, and the used share of the nearer disk limit, from 0 to 1. */
  readonly usedBytes: number;
  readonly diskShare: number;
  /** Why a put would be refused because of the disk; null if it would not. */
  readonly full: string | null;
  /** Transactions since the store was opened. */
  readonly commits: number;
  /** Damaged rows found since the store was opened. */
  readonly damages: number;
  /** Topics that a fail-over of a shared database has made lose messages, or may have, since the store was opened. */
  readonly losses: number;
  /** The largest used share of any topic's client capacity, from 0 to 1; publishers forgotten since the opening. */
  readonly clientsShare: number;
  readonly clientsForgotten: number;
}

/** Requests of clients: a held get, all others, and the end of a held get, which is then answered immediately. */
export const storeRequestKinds = { held: 0, immediate: 1, cancel: 2 } as const;

export interface TopicStoreOpening {
  readonly dataDir: string;
  /** The sender of the responses. */
  readonly server: string;
  readonly options: TopicStoreOptions;
  readonly acceptDamagedLog: boolean;
}

/** All calls to the storage thread. A batch for it is a `FrameBatch` of requests; the kinds are `storeRequestKinds`. */
export type TopicThreadCalls = TopicStoreCalls & {
  /** Returns the store's random id. */
  readonly open: (opening: object) => string;
  /** The other thread has finished a checkpoint. */
  readonly checkpointed: () => void;
  readonly close: () => void;
};

export type TopicStoreEvent =
  /** A `FrameBatch` of responses, whose kinds are indexes of `statusCodes`; `batches` are finished with them. */
  | { readonly kind: "responses"; readonly bytes: Uint8Array; readonly batches: number }
  /** A problem for the operator. */
  | { readonly kind: "problem"; readonly code: ErrorCode; readonly message: string }
  | { readonly kind: "checkpoint" }
  | { readonly kind: "topic lost"; readonly topic: string };

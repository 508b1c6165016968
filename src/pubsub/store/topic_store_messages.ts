/** What is said between a topic store and its threads. */
import type { ErrorCode } from "../../errors.ts";
import type { StoreOptions } from "./store_options.ts";
import type { TopicTransfer } from "./topic_transfer.ts";
import type { TopicSummary } from "./topic_table.ts";
import type { TopicMaintenance } from "./topic_maintenance.ts";

/** Things that are asked for one at a time, and awaited: their arguments and what they give. */
export type TopicStoreCalls =
  & Pick<
    TopicTransfer,
    | "generation"
    | "raiseGeneration"
    | "topicNames"
    | "copiesOf"
    | "create"
    | "seal"
    | "activate"
    | "drop"
    | "discard"
    | "continueBehind"
    | "setAside"
    | "exportBegin"
    | "exportNext"
    | "exportEnd"
    | "importBegin"
    | "importPiece"
    | "importDone"
    | "importEnd"
  >
  & Pick<TopicMaintenance, "show" | "forgetClient" | "repair">
  & { summaries: () => TopicSummary[]; statistics: () => TopicStoreStatistics };

export interface TopicStoreStatistics {
  readonly topics: number;
  readonly waitingGets: number;
  /** What is taken of the database, in bytes, and of the nearer disk limit, from 0 to 1. */
  readonly usedBytes: number;
  readonly diskShare: number;
  /** Why a put would be refused for want of room on the disk; null: it would not. */
  readonly full: string | null;
  /** Transactions since the store was opened. */
  readonly commits: number;
  /** Rows that were found damaged since then. */
  readonly damages: number;
  /** Of the topic that knows most, what it can know, from 0 to 1; publishers that were forgotten since the store was opened. */
  readonly clientsShare: number;
  readonly clientsForgotten: number;
}

export type TopicStoreRequest =
  | {
    readonly kind: "open";
    readonly dataDir: string;
    readonly options: StoreOptions;
    readonly acceptDamagedLog: boolean;
  }
  /** Operations, packed. */
  | { readonly kind: "batch"; readonly bytes: Uint8Array }
  | { readonly kind: "call"; readonly id: number; readonly method: keyof TopicStoreCalls; readonly values: unknown[] }
  /** The log was copied by the other thread. */
  | { readonly kind: "checkpointed" }
  | { readonly kind: "close" };

export type TopicStoreReply =
  | { readonly kind: "opened"; readonly storeId: string }
  | { readonly kind: "closed" }
  /** Responses, packed; so many batches are done with them. */
  | { readonly kind: "responses"; readonly bytes: Uint8Array; readonly batches: number }
  | { readonly kind: "returned"; readonly id: number; readonly value: unknown }
  | { readonly kind: "refused"; readonly id: number; readonly code: ErrorCode; readonly message: string }
  /** Nothing is done any more; of what was not answered nobody knows what became. */
  | { readonly kind: "broken"; readonly code: ErrorCode; readonly message: string }
  | { readonly kind: "disk warning"; readonly sentence: string | null }
  | { readonly kind: "damage" | "warning"; readonly sentence: string }
  | { readonly kind: "checkpoint" };

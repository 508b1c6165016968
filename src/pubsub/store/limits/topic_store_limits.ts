/** Limits of a topic store. Everything here would otherwise grow with the clients' requests. */
import { bodyBytesMax } from "../../wire/message_limits.ts";

/** Remembered counters of a publisher without a session. A counter further below the newest one gets STALE_OP. */
export const plainClientCountersMax = 10_000;
/**
 * Remembered counters of a session at or above `firstUnacked`. A publisher with more in flight never raises its
 * `firstUnacked`.
 */
export const sessionWindowCountersMax = 65_536;
/** Earlier sessions of a client whose counters are remembered, for resumed puts. */
export const sessionWindowsMax = 8;
/** Remembered msg-ids of a publisher at a topic; the newest are kept. */
export const publisherMsgIdsMax = 10_000;
/** Clients of a topic, subscribed or not. */
const clientsPerTopicMax = 100_000;
/** Publishers that are forgotten together when there are too many. */
export const publishersForgottenMax = 1024;
/** Clients without a subscription that are kept in memory. */
export const unsubscribedClientsInMemoryMax = 10_000;
/** Counters in memory; above this limit all are dropped from memory and read again when needed. */
export const countersInMemoryMax = 1_000_000;
/** Puts that were refused with FULL and are refused again when repeated; the newest are kept. */
export const refusedPutsMax = 16_384;
/** Topics of one server. */
export const topicsPerServerMax = 100_000;

/** Operations in flight, without held gets. */
export const operationsInFlightMax = 16_384;
/** Bytes of their bodies, including what gets may return. */
export const operationBytesInFlightMax = 256 << 20;
/**
 * Size of a batch for the storage thread, which works on it while the server reads on. Batches that arrive meanwhile
 * join the same transaction, up to `transactionBytesMax`.
 */
export const threadBatchOperations = 64;
export const threadBatchBytes = 64 << 10;
export const transactionBytesMax = 16 << 20;
/** A smaller batch is posted at the end of the event-loop turn, unless this many batches are in flight. */
export const batchesInFlightMax = 8;
/** Size of a piece of packed responses. */
export const responsePieceBytes = 4 << 20;
/** Held gets. */
export const heldGetsMax = 65_536;
/** Bytes that a get returns if it does not ask for a size. */
const getBytesDefault = 1 << 20;

/** Messages and bytes of one row; a longer message has a row of its own. */
export const logRowMessagesMax = 1024;
export const logRowBytesMax = 256 << 10;
/** Cache of rows: most readers want recent messages. */
export const logRowCacheBytesMax = 32 << 20;
/** Maximum number of rows that one commit deletes. */
export const deletedRowsPerCommitMax = 64;

/** Window rows that are deleted together. */
export const windowRowsPerDelete = 32;

/**
 * Shares of the disk limit: messages are refused from the second one on, new clients and topics from the third one on.
 */
export const diskWarningShare = 0.8;
export const diskFullShare = 0.95;
export const diskReserveShare = 0.975;
/** Bytes that a put writes besides its bodies, and those that each message adds to its names. */
export const putOverheadBytes = 256;
export const messageOverheadBytes = 64;

/** Size of a piece of a topic during a transfer. */
export const transferPieceBytes = 1 << 20;
/** Rows that are looked up together for it. */
export const exportLookupRowsMax = 512;
/**
 * An open topic is sealed when at most this many bytes arrived while the previous part was sent, or after this many
 * rounds if puts are faster than the transfer.
 */
export const sealBelowBytes = 256 << 10;
export const roundsBeforeSealMax = 8;
/** Topics that are exported, and imported, at the same time. */
export const concurrentExportsMax = 64;
export const concurrentImportsMax = 64;
/** Dropped topics that are remembered. */
export const droppedCopiesMax = 100_000;

export interface TopicStoreOptions {
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

export const defaultTopicStoreOptions: TopicStoreOptions = {
  maxPending: null,
  maxTopicBytes: null,
  retainMessages: null,
  retainBytes: null,
  retainMs: null,
  maxDiskBytes: null,
  clientsMax: clientsPerTopicMax,
};

/** Byte limit of a get's bodies: at most what fits into one message on the wire. */
export function getResponseBytesMax(maxBytes = 0): number {
  return maxBytes === 0 ? getBytesDefault : Math.min(maxBytes, bodyBytesMax);
}

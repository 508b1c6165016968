/** Limits of a topic store: memory, disk and rows that would otherwise grow with the requests of clients. */
import { bodyBytesMax } from "../../wire/message_limits.ts";

/** Newest counters remembered of a publisher without a session. A put with an older counter gets STALE_OP. */
export const plainClientCountersMax = 10_000;
/**
 * Counters remembered of a session, at or above its `firstUnacked`. A publisher reaches the limit only if it does not
 * raise its `firstUnacked`.
 */
export const sessionWindowCountersMax = 65_536;
/** Sessions of a client whose counters are remembered, for puts that a later session resumes. */
export const sessionWindowsMax = 8;
/** Newest msg-ids remembered of a publisher at a topic. */
export const publisherMsgIdsMax = 10_000;
/** The most clients of a topic, subscribed or not. */
const clientsPerTopicMax = 100_000;
/** The most publishers that a topic forgets together when it has too many. */
export const publishersForgottenMax = 1024;
/** Clients without a subscription that stay in memory. */
export const unsubscribedClientsInMemoryMax = 10_000;
/** Counters in memory; above this limit the store drops all from memory, and reads them again when needed. */
export const countersInMemoryMax = 1_000_000;
/** Newest puts refused with FULL whose duplicates the store refuses again. */
export const refusedPutsMax = 16_384;
/** The most topics of one server. */
export const topicsPerServerMax = 100_000;

/** The most operations in flight, not counting held gets. */
export const operationsInFlightMax = 16_384;
/** The most bytes of the operations in flight: bodies of puts, and what gets may return. */
export const operationBytesInFlightMax = 256 << 20;
/**
 * The size at which a batch is sent to the storage thread, in operations or bytes. Batches that arrive during a
 * transaction join it, up to `transactionBytesMax`.
 */
export const threadBatchOperations = 64;
export const threadBatchBytes = 64 << 10;
export const transactionBytesMax = 16 << 20;
/** A smaller batch is sent at the end of the event-loop turn, unless this many batches are in flight. */
export const batchesInFlightMax = 8;
/** The size at which responses are sent from the storage thread, in bytes. */
export const responsePieceBytes = 4 << 20;
/** The most held gets. */
export const heldGetsMax = 65_536;
/** The most bytes that a get returns if it does not ask for a size. */
const getBytesDefault = 1 << 20;

/** The most messages and bytes in one row of the log; a longer message has its own row. */
export const logRowMessagesMax = 1024;
export const logRowBytesMax = 256 << 10;
/** The most bytes of log rows in memory. */
export const logRowCacheBytesMax = 32 << 20;
/** The most log rows that one commit deletes from a topic. */
export const deletedRowsPerCommitMax = 64;

/** Rows of a counter window that are deleted together. */
export const windowRowsPerDelete = 32;

/**
 * Shares of the disk limit: above the first the store warns, from the second on it refuses messages, and from the third
 * on also new clients and topics.
 */
export const diskWarningShare = 0.8;
export const diskFullShare = 0.95;
export const diskReserveShare = 0.975;
/** Bytes that a put writes in addition to bodies and names: for the whole put, and for each of its messages. */
export const putOverheadBytes = 256;
export const messageOverheadBytes = 64;

/** The size of a piece of a topic in a transfer, in bytes. */
export const transferPieceBytes = 1 << 20;
/** The most log rows that an export looks up together for a piece. */
export const exportLookupRowsMax = 512;
/**
 * An export sends an open topic in rounds. It seals the topic when at most this many bytes were put during a round, or
 * after this many rounds if puts are faster than the transfer.
 */
export const sealBelowBytes = 256 << 10;
export const roundsBeforeSealMax = 8;
/** The most topics that are exported, and imported, at a time. */
export const concurrentExportsMax = 64;
export const concurrentImportsMax = 64;
/** Dropped copies that the store remembers. */
export const droppedCopiesMax = 100_000;

export interface TopicStoreOptions {
  /** The most undelivered messages of the slowest subscriber; the store refuses further puts (FULL). */
  readonly maxPending: number | null;
  /** The most bytes of a topic's messages; the store refuses further puts (FULL). */
  readonly maxTopicBytes: number | null;
  /**
   * Retention by count, bytes or age: older messages are deleted even if a subscriber has not received them. The store
   * deletes only whole rows, so it keeps slightly more.
   */
  readonly retainMessages: number | null;
  readonly retainBytes: number | null;
  readonly retainMs: number | null;
  /** The most bytes of the whole store. The free space of the file system is also a limit. */
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

/** Returns how many bytes of bodies a get may return, at most what fits into one message on the wire. */
export function getResponseBytesMax(maxBytes = 0): number {
  return maxBytes === 0 ? getBytesDefault : Math.min(maxBytes, bodyBytesMax);
}

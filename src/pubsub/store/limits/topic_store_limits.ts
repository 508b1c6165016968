/** The limits of a topic store. Without them, memory, disk use and rows would grow with the requests of clients. */
import { bodyBytesMax } from "../../wire/message_limits.ts";

/**
 * The most counters that the store remembers for a publisher without a session. A put with an older counter gets
 * STALE_OP.
 */
export const plainClientCountersMax = 10_000;
/**
 * The most counters at or above `firstUnacked` that the store remembers for a session. A publisher that raises
 * `firstUnacked` does not reach this limit.
 */
export const sessionWindowCountersMax = 65_536;
/** The most sessions of a client whose counters are remembered. A later session may resume their puts. */
export const sessionWindowsPerClientMax = 8;
/** The most msg-ids of a publisher that a topic remembers. */
export const publisherMsgIdsMax = 10_000;
/** The most clients of a topic, subscribed or not. */
const clientsPerTopicMax = 100_000;
/** The most publishers that a topic forgets together when it has too many clients. */
export const publishersForgottenMax = 1024;
export const unsubscribedClientsInMemoryMax = 10_000;
/**
 * The most counters in memory. Above this limit, the store drops all counters from memory and reads them again when
 * needed.
 */
export const countersInMemoryMax = 1_000_000;
/** The most puts refused with FULL that the store remembers. */
export const refusedPutsMax = 16_384;
export const topicsPerServerMax = 100_000;

/** The most operations in flight, not counting held gets. */
export const operationsInFlightMax = 16_384;
/** The most bytes that all operations in flight may need, for the bodies of puts and for the responses to gets. */
export const operationBytesInFlightMax = 256 << 20;
/**
 * A batch is sent to the storage thread when it has this many operations or bytes. A transaction takes all waiting
 * batches, up to `transactionBytesMax`.
 */
export const threadBatchOperations = 64;
export const threadBatchBytes = 64 << 10;
export const transactionBytesMax = 16 << 20;
/** A smaller batch is sent at the end of the event-loop turn, unless this many batches are in flight. */
export const batchesInFlightMax = 8;
/** The storage thread sends its responses when they reach this size, in bytes. */
export const responsePieceBytes = 4 << 20;
export const heldGetsMax = 65_536;
/** The most bytes that a get returns if it does not ask for a size. */
const getBytesDefault = 1 << 20;

/** The most messages and bytes in one row of the log. A message with more bytes has its own row. */
export const logRowMessagesMax = 1024;
export const logRowBytesMax = 256 << 10;
export const logRowCacheBytesMax = 32 << 20;
export const deletedRowsPerCommitMax = 64;

/** The number of rows of a counter window that are deleted together. */
export const windowRowsPerDelete = 32;

/**
 * Shares of the disk limit. The store warns at the first share, refuses messages at the second, and also refuses new
 * clients and topics at the third.
 */
export const diskWarningShare = 0.8;
export const diskFullShare = 0.95;
export const diskReserveShare = 0.975;
/** The bytes that a put writes in addition to bodies and names: for the whole put, and for each of its messages. */
export const putOverheadBytes = 256;
export const messageOverheadBytes = 64;

export const transferPieceBytes = 1 << 20;
/** The most log rows that an export looks up together for a piece. */
export const exportLookupRowsMax = 512;
/**
 * An export sends an open topic in rounds. It seals the topic when at most this many bytes were put during a round, or
 * after this many rounds if puts are faster than the transfer.
 */
export const putBytesBeforeSealMax = 256 << 10;
export const exportRoundsBeforeSealMax = 8;
/** The most topics that are exported, and imported, at a time. */
export const concurrentExportsMax = 64;
export const concurrentImportsMax = 64;
export const droppedCopiesMax = 100_000;

export interface TopicStoreOptions {
  /** The most undelivered messages of the slowest subscriber. Above this number, the store refuses puts with FULL. */
  readonly maxPending: number | null;
  /** The most bytes of the topic's messages. Above this number, the store refuses puts with FULL. */
  readonly maxTopicBytes: number | null;
  /**
   * The retention limits by count, bytes and age. Messages beyond a limit are deleted, even if a subscriber has not
   * received them. Only whole rows are deleted, so slightly more messages are kept.
   */
  readonly retainMessages: number | null;
  readonly retainBytes: number | null;
  readonly retainMs: number | null;
  /** The most bytes of the whole store. The free space of the file system is also a limit. */
  readonly maxDiskBytes: number | null;
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

/** Returns how many bytes of message bodies a get may return. All of them must fit into one message on the wire. */
export function getResponseBytesMax(maxBytes = 0): number {
  return maxBytes === 0 ? getBytesDefault : Math.min(maxBytes, bodyBytesMax);
}

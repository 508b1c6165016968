/** How much a topic store holds and has under way. Everything here grows with what clients do. */

/** Counters that are remembered of a publisher without a session. Below the newest by more than this: STALE_OP. */
export const plainWindowCounters = 10_000;
/** Counters at and above `firstUnacked` that are remembered of a session. A publisher with more under way never raises its `firstUnacked`. */
export const sessionWindowCountersMax = 65_536;
/** Earlier sessions of a client whose counters are remembered, for puts that are resumed. */
export const sessionWindowsMax = 8;
/** msg-ids that are remembered of a publisher at a topic, the newest. */
export const msgIdsMax = 10_000;
/** Clients that a topic knows, subscribed or not. */
export const clientsPerTopicMax = 100_000;
/** Publishers that are forgotten together when there are too many. */
export const forgottenPerTimeMax = 1024;
/** Clients that are kept in memory although they are not subscribed. */
export const unsubscribedClientsInMemoryMax = 10_000;
/** Counters that come into memory before all are forgotten there, and read again where they are needed. */
export const countersInMemoryMax = 1_000_000;
/** Puts that were refused because there was no room, and are refused again should they come once more; the newest. */
export const refusedPutsMax = 16_384;
/** Topics of one server. */
export const topicsMax = 100_000;

/** Operations that are handed to the store and not answered, those that wait for messages excepted. */
export const operationsMax = 16_384;
/** What the bodies of those may take, and what gets may bring. */
export const operationBytesMax = 256 << 20;
/**
 * So much goes to the thread at once, which works on it while the server reads on: it takes what has come meanwhile into the
 * same transaction, as long as all is no longer than `transactionBytes`.
 */
export const batchOperations = 64;
export const batchBytes = 64 << 10;
export const transactionBytes = 16 << 20;
/** Less than that goes when the turn is over, unless so many are under way: then it is gathered. */
export const batchesMax = 8;
/** Responses go back in pieces of about this size. */
export const responsePieceBytes = 4 << 20;
/** Gets that wait for messages. */
export const waitingGetsMax = 65_536;
/** What a get brings when it does not say how much. */
export const getBytesDefault = 1 << 20;

/** Messages that lie in one row, and their bytes; a longer one lies in a row alone. */
export const rowMessagesMax = 1024;
export const rowBytesMax = 256 << 10;
/** Rows kept in memory, because those who read are mostly those who have read everything before. */
export const rowCacheBytesMax = 32 << 20;
/** Rows that one commit deletes at most of what nobody needs any more. */
export const deletedRowsPerCommitMax = 64;

/** Rows of a window that are deleted together, when nobody asks for their counters any more. */
export const forgottenRowsPerDelete = 32;

/** Parts of the disk limit. */
export const diskWarningShare = 0.8;
export const diskFullShare = 0.95;

/** One piece of a topic on its way to another server. */
export const pieceBytes = 1 << 20;
/** Rows that are looked up together for it. */
export const exportRowsMax = 512;
/**
 * An open topic that is sent is sealed when so little has come while the rest of it arrived, in bytes; or after so many
 * rounds, if it is put to faster than it is sent.
 */
export const sealBelowBytes = 256 << 10;
export const roundsBeforeSealMax = 8;
/** Topics that are sent, and that are received, at once. */
export const exportsMax = 64;
export const importsMax = 64;
/** Topics that were dropped and are remembered. */
export const droppedTopicsMax = 100_000;

/** Everything of a store that could grow, by its name. What a user may change is a setting; these are the ends of it. */

/** A message's body, at most; what --max-body may be set to. Bytes. */
export const bodyBytesMax = 256 << 20;
/** Command line, path and headers of a message, as they are stored. Bytes. */
export const headBytesMax = 256 << 10;
/** What groups messages (--key). Bytes. */
export const keyBytesMax = 1024;
/** The last error that a message carries. Characters. */
export const errorCharsMax = 500;
/** Messages taken for tries at once. */
export const claimsMax = 256;
/** Bodies given out at once, beyond the first. Bytes. */
export const claimBytesMax = 32 << 20;
/** Rows that one transaction of an operator changes, so that nobody waits long for the next. */
export const changesMax = 1000;
/** Rows of a list. */
export const listMax = 100_000;
/** Requests that one transaction serves. */
export const requestsPerCommit = 1024;
/** The write-ahead log keeps this much of the disk, so that what has begun can be ended when the disk is full. Bytes. */
export const logBytes = 4 << 20;
/**
 * Nothing is taken in that would leave the file system less: what was accepted can then still be tried and ended, and the store
 * opened. The smaller of these, but no less than the last. Bytes, and a part of the whole.
 */
export const freeBytesKept = 16 << 20;
export const freeShareKept = 0.05;
export const freeBytesLeast = 8 << 20;
/** How long a transaction waits for those of other processes, in milliseconds. */
export const busyMs = 30_000;
/** How long a dead letter rests that could not be sent while others could: the first time, and at most. Milliseconds. */
export const forwardDelayMs = { first: 2000, max: 300_000 };

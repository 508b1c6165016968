/** Size limits of messages. A message over a limit is refused, never truncated. */

/** Bytes of the header, including the empty line at its end. */
export const headerBytesMax = 64 << 10;
/** UTF-8 bytes of a token (an ID or a topic) before percent-encoding. */
export const tokenBytesMax = 1024;
/** Bytes of a body, inclusive. The same limit holds for all bodies of a batch together. */
export const bodyBytesMax = 64 << 20;
/** Characters of the random part of a session token. */
export const sessionKeyLengthMax = 64;
/** Messages in one batch (`count`), and therefore frames after the header's. */
export const batchMessagesMax = 1024;
/** Maximum of all numbers: the largest exact integer of a double. A larger counter or ID is refused, never rounded. */
export const messageNumberMax = Number.MAX_SAFE_INTEGER;
/**
 * A number that a client continues from, its session or a counter without a session, is refused above the first one,
 * unless it is at most the second one above the last number of this client: otherwise one request could use up all that
 * are left.
 */
export const freeClientNumberMax = 2 ** 48;
export const clientNumberStepMax = 2 ** 20;
/** Bytes of a whole message in its frames, which a socket may have to buffer. */
const messageBytesMax = headerBytesMax + bodyBytesMax;
/** Limits of a socket that receives such messages with an envelope: every valid message passes. */
export const pubsubSocketLimits = { framesMax: batchMessagesMax + 16, messageBytesMax: messageBytesMax + (64 << 10) };
/** Characters of a refused value that are quoted. */
export const quotedValueLengthMax = 64;

/**
 * Size limits of publish/subscribe messages. A server rejects a message that exceeds a limit; it never truncates one.
 */

/** The most bytes of a header, including the empty line at its end. */
export const headerBytesMax = 64 << 10;
/** The most UTF-8 bytes of a token (an ID or a topic) before percent-encoding. */
export const nameTokenBytesMax = 1024;
/** The most bytes of a body, and of all bodies of a batch together. */
export const bodyBytesMax = 64 << 20;
export const sessionKeyLengthMax = 64;
/** The most messages in a batch (`count`), each in its own frame after the header's frame. */
export const batchMessagesMax = 1024;
/**
 * The largest number in a message: the largest integer that a double represents exactly. Larger numbers are rejected,
 * never rounded.
 */
export const messageNumberMax = Number.MAX_SAFE_INTEGER;
/**
 * Limits for a client's session numbers, operation numbers, and counters without a session. Up to
 * `unrestrictedClientNumberMax`, a client may use any number. Above it, a number may exceed the client's last one by at
 * most `clientNumberStepMax`. Otherwise one request could use up all numbers that are left.
 */
export const unrestrictedClientNumberMax = 2 ** 48;
export const clientNumberStepMax = 2 ** 20;
/** The most bytes of all frames of a message, which a socket may have to buffer. */
const messageBytesMax = headerBytesMax + bodyBytesMax;
/** Limits for sockets that receive these messages. Every valid message with its envelope is within them. */
export const pubsubSocketLimits = { framesMax: batchMessagesMax + 16, messageBytesMax: messageBytesMax + (64 << 10) };
/** The most characters that an error message quotes of an invalid value. */
export const quotedValueLengthMax = 64;

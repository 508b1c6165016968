/** How large a message of the publish/subscribe protocol may be. What is over a limit is refused, never cut. */

/** The header with both its ends, in bytes. */
export const headerBytesMax = 64 << 10;
/** A token (an id, a topic, a word of one's own) before it is percent-encoded, in bytes of UTF-8. */
export const tokenBytesMax = 1024;
/** A body, inclusive, in bytes. The bodies of one batch together have no more room than one alone. */
export const bodyBytesMax = 64 << 20;
/** The random part of a session token, in characters. */
export const sessionKeyLengthMax = 64;
/** Messages in one batch (`count`), and so the frames behind its header. */
export const batchMessagesMax = 1024;
/** Every number: what a double holds exactly. A counter or an id beyond it is refused, never rounded. */
export const numberMax = Number.MAX_SAFE_INTEGER;
/** The room of a whole message in its frames: what a socket may buffer for one. */
export const messageBytesMax = headerBytesMax + bodyBytesMax;
/** Of a socket that takes such messages with an envelope before them: every one that makes sense has to pass. */
export const socketLimits = { framesMax: batchMessagesMax + 16, messageBytesMax: messageBytesMax + (64 << 10) };
/** What is quoted of a value that was refused, in characters. */
export const quotedLengthMax = 64;

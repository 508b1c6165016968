/** Limits of everything that can grow in a store. Some settings can lower these limits. */
import { BatonError } from "../../base/errors.ts";
import type { NewMessage } from "./stored_message.ts";

/** The largest --max-body, in bytes. */
export const bodyBytesMax = 256 << 20;
/** The largest --max-body for a store in a database, in bytes. The database needs several times this memory. */
export const postgresBodyBytesMax = 64 << 20;
/** The largest size of command line, path and headers of a message, in bytes. */
export const headBytesMax = 256 << 10;
/** The longest --key, in bytes. */
export const keyBytesMax = 1024;
/** The longest last error of a message, in characters. */
export const errorCharsMax = 500;
/** The most messages in one claim. */
export const claimsMax = 256;
/** The largest size of the bodies in one claim, in bytes. The first body may be larger. */
export const claimBytesMax = 32 << 20;
/** The most rows in one transaction of an operator. Other transactions then do not wait for long. */
export const operatorChangesMax = 1000;
/** The bytes of the write-ahead log that are reserved, so that tries can be recorded when the disk is full. */
export const reservedLogBytes = 4 << 20;
/**
 * The free space that accepting messages must leave, so that messages can be tried and recorded. It is the smaller of
 * `freeBytesKept` and this share of the disk, but at least `freeBytesLeast`.
 */
export const freeBytesKept = 16 << 20;
export const freeShareKept = 0.05;
export const freeBytesLeast = 8 << 20;
/** Bytes that each message takes besides its content. */
export const storedMessageOverheadBytes = 1024;
/** When there is no room, how long pages are freed, in milliseconds, `vacuumPages` in each transaction. */
export const makeRoomMs = 500;
export const vacuumPages = 256;
/** How long a transaction waits for other processes, in milliseconds. */
export const databaseBusyTimeoutMs = 30_000;
/** The first and the longest delay before a failed dead letter is sent again, in milliseconds. */
export const forwardDelayMs = { first: 2000, max: 300_000 };

/** Returns the size of a message in bytes. Throws BAD_DATA for a message that is too large for the store. */
export function checkMessageSizes({ head, body, key }: NewMessage, bodyMax: number = bodyBytesMax): number {
  const refuse = (what: string, bytes: number, max: number) => {
    throw new BatonError(
      "BAD_DATA",
      `Cannot store a message whose ${what} has ${bytes} bytes: at most ${max} are allowed`,
    );
  };
  if (body.byteLength > bodyMax) refuse("body", body.byteLength, bodyMax);
  const headBytes = Buffer.byteLength(JSON.stringify(head));
  if (headBytes > headBytesMax) refuse("command line or headers", headBytes, headBytesMax);
  const keyBytes = Buffer.byteLength(key ?? "");
  if (keyBytes > keyBytesMax) refuse("key", keyBytes, keyBytesMax);
  return headBytes + body.byteLength + keyBytes;
}

/** Limits of everything in a store that can grow. Settings may be lower. */
import { BatonError } from "../../base/errors.ts";
import type { NewMessage } from "./stored_message.ts";

/** Maximum of --max-body. Bytes. */
export const bodyBytesMax = 256 << 20;
/**
 * The same for a store in a database: a body is sent and read as one value; the database can hold larger ones, but
 * needs several times their size in memory.
 */
export const postgresBodyBytesMax = 64 << 20;
/** Maximum size of command line, path and headers of a message. Bytes. */
export const headBytesMax = 256 << 10;
/** Maximum length of --key. Bytes. */
export const keyBytesMax = 1024;
/** Maximum length of the last error of a message. Characters. */
export const errorCharsMax = 500;
/** Maximum number of messages in one claim. */
export const claimsMax = 256;
/** Maximum size of the bodies in one claim, except the first. Bytes. */
export const claimBytesMax = 32 << 20;
/** Rows that one transaction of an operator changes, so that other transactions do not wait for long. */
export const changesMax = 1000;
/** Reserved size of the write-ahead log, so that tries in flight can be recorded when the disk is full. Bytes. */
export const logBytes = 4 << 20;
/**
 * Free space that remains on the file system when messages are accepted, so that accepted messages can be tried and
 * recorded and the store can be opened: the smaller of the first two, but at least the last. Bytes, and a share of the
 * disk.
 */
export const freeBytesKept = 16 << 20;
export const freeShareKept = 0.05;
export const freeBytesLeast = 8 << 20;
/** Bytes that each message takes besides its content. */
export const messageBytes = 1024;
/**
 * How long unused pages are given to the file system when there is no room, in milliseconds, and how many in one
 * transaction.
 */
export const makeRoomMs = 500;
export const vacuumPages = 256;
/** How long a transaction waits for other processes, in milliseconds. */
export const busyMs = 30_000;
/** Delay before a dead letter that failed is sent again: the first one and the longest. Milliseconds. */
export const forwardDelayMs = { first: 2000, max: 300_000 };

/** Throws BAD_DATA for a message that is too large for the store. Returns its size. */
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

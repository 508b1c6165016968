/** Limits of everything that can grow in a store. Some settings can lower them. */
import { BatonError } from "../../base/errors.ts";
import type { NewMessage } from "./stored_message.ts";

/** The largest --max-body, in bytes. */
export const bodyBytesMax = 256 << 20;
/** The largest --max-body for a store in a database, in bytes. The database needs several times this memory. */
export const postgresBodyBytesMax = 64 << 20;
/** Maximum size of command line, path and headers of a message, in bytes. */
export const headBytesMax = 256 << 10;
/** Maximum length of --key, in bytes. */
export const keyBytesMax = 1024;
/** Maximum length of the last error of a message, in characters. */
export const errorCharsMax = 500;
/** Maximum number of messages in one claim. */
export const claimsMax = 256;
/** Maximum size of the bodies in one claim, in bytes. The first body may be larger. */
export const claimBytesMax = 32 << 20;
/** Maximum number of rows in one transaction of an operator, so that other transactions do not wait for long. */
export const operatorChangesMax = 1000;
/** Reserved bytes of the write-ahead log, so that tries can be recorded when the disk is full. */
export const reservedLogBytes = 4 << 20;
/**
 * Accepting messages leaves free space, so that messages can be tried and recorded. It is the smaller of
 * `freeBytesKept` and this share of the disk, but at least `freeBytesLeast`.
 */
export const freeBytesKept = 16 << 20;
export const freeShareKept = 0.05;
export const freeBytesLeast = 8 << 20;
/** Bytes that each message takes besides its content. */
export const storedMessageOverheadBytes = 1024;
/** When there is no room, pages are freed for this time in ms, `vacuumPages` in each transaction. */
export const makeRoomMs = 500;
export const vacuumPages = 256;
/** How long a transaction waits for other processes, in ms. */
export const databaseBusyTimeoutMs = 30_000;
/** Delays in ms before a failed dead letter is sent again: the first and the longest. */
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

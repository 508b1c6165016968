/** Names that are never used twice. */

/** 128 random bits as 32 hexadecimal digits. From the global `crypto`: loading node:crypto costs 3 ms of a start. */
export function newGuid(): string {
  return crypto.getRandomValues(new Uint8Array(16)).toHex();
}

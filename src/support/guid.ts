/** Unique names. */

/** 128 random bits as 32 hexadecimal digits. Uses the global `crypto`: loading node:crypto takes 3 ms of a start. */
export function newGuid(): string {
  return crypto.getRandomValues(new Uint8Array(16)).toHex();
}

/** Makes unique names for nodes, holders and messages. */

/**
 * Returns 128 random bits as 32 hexadecimal digits. Uses the global `crypto`, because loading node:crypto would take 3
 * ms at each start. Does not use `toHex`, which Node 22 does not have.
 */
export function newGuid(): string {
  let text = "";
  for (const byte of crypto.getRandomValues(new Uint8Array(16))) text += byte.toString(16).padStart(2, "0");
  return text;
}

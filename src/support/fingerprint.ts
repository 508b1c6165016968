/** A short text that stands for a longer one: the same everywhere, and for two that differ another one, but for bad luck. */

const prime = 0x100000001b3n;
const offset = 0xcbf29ce484222325n;

const utf8 = new TextEncoder();

/** FNV-1a of the UTF-8, as 16 hexadecimal digits. Nothing that anybody may want to forge: node:crypto costs 3 ms of a start. */
export function fingerprint(text: string): string {
  let hash = offset;
  for (const byte of utf8.encode(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * prime);
  return hash.toString(16).padStart(16, "0");
}

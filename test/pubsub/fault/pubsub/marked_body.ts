/** Bodies that can be told from each other, and whose damage is seen: a name, and bytes that follow from it. Pure. */
import { createHash } from "node:crypto";
import type { Got, Put } from "./history.ts";

const nameCharsMax = 80;
const filler = Buffer.from("All that was said is heard once, in the order in which it was said. ".repeat(1024));

/** `name` is unique, without a blank. `bytes`: how long the body is at least. */
export function markedBody(name: string, bytes = 0): Uint8Array {
  const head = Buffer.from(`${name} `);
  const fill = Math.max(0, bytes - head.byteLength);
  const parts: Uint8Array[] = [head];
  for (let left = fill; left > 0; left -= filler.byteLength) parts.push(filler.subarray(0, left));
  return Buffer.concat(parts);
}

/** What stands before the first blank, as far as it is a name. */
export function nameIn(body: Uint8Array): string {
  const head = Buffer.from(body.buffer, body.byteOffset, Math.min(body.byteLength, nameCharsMax)).toString("latin1");
  const end = head.indexOf(" ");
  return end < 0 ? head : head.slice(0, end);
}

/** 64 bits of the body's SHA-256. */
export function hashOf(body: Uint8Array): string {
  return createHash("sha256").update(body).digest("hex").slice(0, 16);
}

export const putOf = (body: Uint8Array): Put => [nameIn(body), hashOf(body)];
export const gotOf = (id: number, body: Uint8Array): Got => [id, nameIn(body), hashOf(body)];

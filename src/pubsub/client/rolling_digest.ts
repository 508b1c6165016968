/** Tells a row of messages from any other: the hash of each, and of the hash before it. Pure. */
import { createHash } from "node:crypto";

/** Of no message. */
export const emptyDigest = "";

export function rollingDigest(chain: string, item: Uint8Array): string {
  return createHash("sha256").update(chain).update(item).digest("hex");
}

/** Bun's digests are those of node:crypto and node:zlib, which other runtimes use for the same files. */
import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { crc32 as nodeCrc32 } from "node:zlib";
import { crc32, sha256Hex } from "../../../../src/base/support/digest.ts";
import { seededRandom } from "../../../support/random.ts";

const random = seededRandom(1);
const randomBytes = (length: number) => Uint8Array.from({ length }, () => Math.floor(random() * 256));

test("digests are the same in all runtimes", () => {
  for (let length = 0; length < 300; length += 7) {
    const [first, second] = [randomBytes(length), randomBytes(300 - length)];
    const sum = crc32(first);
    expect(sum).toBe(nodeCrc32(first));
    expect(crc32(second, sum)).toBe(nodeCrc32(second, sum));
    expect(sha256Hex("über", second)).toBe(createHash("sha256").update("über").update(second).digest("hex"));
  }
});

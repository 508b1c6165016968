import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BatonError } from "../../../../../src/base/errors.ts";
import { encodeZ85 } from "../../../../../src/base/wire/z85.ts";
import { recordedEnd, recordedKeys } from "../../../../fixtures/curve/recording.ts";
import { property } from "../../../../support/property.ts";
import { hex } from "../../../../support/wire.ts";
import { cut } from "../../../../support/zmtp_bytes.ts";

const folder = join(import.meta.dirname, "../../../../fixtures/curve");
const recorded = (name: string) => hex(readFileSync(join(folder, name), "utf8"));
const clientName = encodeZ85(recordedKeys.client.publicKey);

const ends = [
  {
    role: "client",
    bytes: recorded("libzmq_server.hex"),
    heard: ["ready ROUTER  ", "message heard 5 5 0 300", "message again 5"],
  },
  {
    role: "server",
    bytes: recorded("libzmq_client.hex"),
    heard: [`ready DEALER libzmq ${clientName}`, "message hello 5 0 300"],
  },
] as const;

describe.each(ends)("as the $role of a connection with libzmq 4.3.4 that was recorded", ({ role, bytes, heard }) => {
  test("the handshake succeeds and every message opens", () => {
    const end = recordedEnd(role);
    end.peer.push(bytes);
    expect(end.heard).toEqual([...heard]);
  });

  property("wherever the stream is cut", fc.array(fc.nat(), { maxLength: 5 }), (places) => {
    const end = recordedEnd(role);
    for (const piece of cut(bytes, places)) end.peer.push(piece);
    expect(end.heard).toEqual([...heard]);
  }, 50);

  property(
    "one byte changed behind the greeting ends it, and nothing false is heard",
    fc.tuple(fc.integer({ min: 64, max: bytes.length - 1 }), fc.integer({ min: 1, max: 255 })),
    ([at, mask]) => {
      const changed = bytes.slice();
      changed[at] = (changed[at] ?? 0) ^ mask;
      const end = recordedEnd(role);
      let isRefused = false;
      try {
        end.peer.push(changed);
      } catch (error) {
        expect(error).toBeInstanceOf(BatonError);
        isRefused = true;
      }
      // A length made longer asks for bytes that never come, and a frame's flag is not authenticated.
      expect(isRefused || end.heard.length < heard.length || isFlag(bytes, at)).toBe(true);
      expect(end.heard).toEqual(heard.slice(0, end.heard.length));
    },
    200,
  );
});

/** Whether a frame begins there: its flags travel in the clear. */
function isFlag(bytes: Uint8Array, at: number): boolean {
  let start = 64;
  while (start < at) {
    const isLong = ((bytes[start] ?? 0) & 2) !== 0;
    const view = new DataView(bytes.buffer, bytes.byteOffset + start + 1);
    start += isLong ? 9 + Number(view.getBigUint64(0)) : 2 + view.getUint8(0);
  }
  return start === at;
}

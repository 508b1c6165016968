/** The quick way to write OK with ids writes what the ordinary one writes, or nothing. */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  encodeGeneralPubsubMessage,
  encodePubsubMessage,
  encodePutResponse,
} from "../../../../src/pubsub/wire/encode_message.ts";
import type { PubsubMessage } from "../../../../src/pubsub/wire/pubsub_messages.ts";
import { dose } from "../../../support/dose.ts";
import { property } from "../../../support/property.ts";

const id = fc.oneof(
  fc.nat(),
  fc.constantFrom(0, 9, 10, 99, 100, 999_999, 1_000_000, 2 ** 32, 10 ** 15, Number.MAX_SAFE_INTEGER),
);
const range = fc.tuple(id, id).map(([one, other]) => ({ first: Math.min(one, other), last: Math.max(one, other) }));
const ordinary = fc.record({
  name: fc.constant("STATUS" as const),
  sender: fc.constantFrom("s1", "s2", "a b", "ä", "%", "s".repeat(1024)),
  status: fc.constant("OK" as const),
  headers: fc.record({ ids: range.map((one) => [one]) }),
});
const any = fc.record({
  name: fc.constant("STATUS" as const),
  sender: fc.constantFrom("s1", "s2", "a b", "ä", "%", "s".repeat(1024)),
  status: fc.constantFrom("OK" as const, "OK" as const, "FULL" as const),
  headers: fc.record({ ids: fc.array(range, { maxLength: 2 }), epoch: fc.nat() }, { requiredKeys: [] }),
  messageId: fc.nat(),
  body: fc.uint8Array({ maxLength: 3 }),
  batch: fc.array(fc.uint8Array({ maxLength: 3 }), { minLength: 1, maxLength: 2 }),
}, { requiredKeys: ["name", "sender", "status"] });

property(
  "OK with ids is the same bytes, whoever says it and whatever the numbers",
  fc.oneof(ordinary.map((message) => ({ message, isOrdinary: true })), any.map((message) => ({ message }))),
  ({ message: given, ...rest }) => {
    const message = given as PubsubMessage;
    const quick = encodePutResponse(message);
    if ("isOrdinary" in rest) expect(quick).not.toBeNull();
    expect(encodePubsubMessage(message)).toEqual(encodeGeneralPubsubMessage(message));
  },
  dose({ gate: 2000, full: 50_000 }),
);

test("what a put is answered goes this way, and each answer is the caller's own", () => {
  const answer = (first: number, last = first): PubsubMessage => ({
    name: "STATUS",
    sender: "s1",
    status: "OK",
    headers: { ids: [{ first, last }] },
  });
  const text = (bytes: Uint8Array | null) => new TextDecoder().decode(bytes ?? new Uint8Array(0));
  const one = encodePutResponse(answer(17));
  const other = encodePutResponse(answer(9_007_199_254_740_990, 9_007_199_254_740_991));
  expect(text(one)).toBe("STATUS s1 OK\r\nids: 17\r\n\r\n");
  expect(text(other)).toBe("STATUS s1 OK\r\nids: 9007199254740990-9007199254740991\r\n\r\n");
});

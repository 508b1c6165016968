/** The quick way to write OK with ids writes what the ordinary one writes. */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { encodePubsubMessage, encodePutResponse } from "../../../../src/pubsub/wire/encode_message.ts";
import { dose } from "../../../support/dose.ts";
import { property } from "../../../support/property.ts";

const id = fc.oneof(
  fc.nat(),
  fc.constantFrom(0, 9, 10, 99, 100, 999_999, 1_000_000, 2 ** 32, 10 ** 15, Number.MAX_SAFE_INTEGER),
);
const range = fc.tuple(id, id).map(([one, other]) => ({ first: Math.min(one, other), last: Math.max(one, other) }));

property(
  "OK with ids is the same bytes, whoever says it and whatever the numbers",
  fc.tuple(fc.constantFrom("s1", "s2", "a b", "ä", "%", "s".repeat(1024)), range),
  ([sender, ids]) => {
    const [frame] = encodePubsubMessage({ name: "STATUS", sender, status: "OK", headers: { ids: [ids] } });
    expect(encodePutResponse(sender, ids)).toEqual(frame as Uint8Array);
  },
  dose({ gate: 2000, full: 50_000 }),
);

test("each response is the caller's own", () => {
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  const one = encodePutResponse("s1", { first: 17, last: 17 });
  const other = encodePutResponse("s1", { first: 9_007_199_254_740_990, last: 9_007_199_254_740_991 });
  expect(text(one)).toBe("STATUS s1 OK\r\nids: 17\r\n\r\n");
  expect(text(other)).toBe("STATUS s1 OK\r\nids: 9007199254740990-9007199254740991\r\n\r\n");
});

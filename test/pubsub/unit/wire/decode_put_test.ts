/** The quick way to read a PUT says what the ordinary one says, or nothing. */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { decodeGeneralPubsubMessage } from "../../../../src/pubsub/wire/decode_message.ts";
import { decodePutRequest, readPutTopic } from "../../../../src/pubsub/wire/decode_put.ts";
import { encodePubsubMessage } from "../../../../src/pubsub/wire/encode_message.ts";
import { dose } from "../../../support/dose.ts";
import { property } from "../../../support/property.ts";

const utf8 = new TextEncoder();
const word = fc.oneof(
  fc.constantFrom(
    "news",
    "a",
    "PUT",
    "a:1",
    "../x",
    "%41",
    "ä",
    "",
    "x y",
    "1/k",
    "0",
    "007",
    "9".repeat(15),
    "9".repeat(16),
  ),
  fc.string({ maxLength: 12 }),
  fc.nat().map(String),
);
const lineName = fc.constantFrom(
  "session",
  "first-unacked",
  "after",
  "deadline-ms",
  "version",
  "epoch",
  "count",
  "msg-id",
  "x",
  "",
);
const line = fc.tuple(lineName, fc.constantFrom(": ", ":", " : "), word).map((parts) => parts.join(""));
const end = fc.constantFrom("\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r", "");
const ordinary = fc.record({
  sender: fc.constantFrom("writer", "b", "a:1"),
  topic: fc.constantFrom("news", "t"),
  counter: fc.nat(),
  body: fc.uint8Array({ minLength: 1, maxLength: 30 }),
  headers: fc.option(
    fc.record({
      session: fc.record({ number: fc.integer({ min: 1, max: 9 }), key: fc.constantFrom("k", "w%", "long key") }),
      firstUnacked: fc.nat(),
      after: fc.nat(),
      deadlineMs: fc.nat(),
      version: fc.nat(),
      registration: fc.nat(),
    }, { requiredKeys: [] }).filter((some) => Object.keys(some).length > 0),
    { nil: undefined },
  ),
});

function same(frame: Uint8Array): void {
  const quick = decodePutRequest(frame);
  const whole = decodeGeneralPubsubMessage([frame], frame);
  if (quick !== null) expect(quick as unknown).toEqual(whole);
  // A request is admitted by the topic that was read alone, and executed on the topic of the whole.
  const topic = readPutTopic(frame);
  if (topic !== null && whole.name !== null) expect(whole).toMatchObject({ name: "PUT", topic });
}

property(
  "of anything that looks like a PUT",
  fc.tuple(
    fc.constantFrom("PUT ", "PUT", "GET "),
    fc.array(word, { maxLength: 5 }),
    fc.array(fc.tuple(line, end), { maxLength: 5 }),
    end,
    end,
    word,
  ),
  ([name, words, headers, first, last, body]) => {
    same(utf8.encode(`${name}${words.join(" ")}${first}${headers.flat().join("")}${last}${body}`));
  },
  dose({ gate: 2000, full: 50_000 }),
);

property(
  "of what was encoded, which it mostly reads, and of that with a byte changed",
  fc.tuple(ordinary, fc.nat(), fc.nat(255)),
  ([message, at, byte]) => {
    const { headers, ...rest } = message;
    const [frame = new Uint8Array(0)] = encodePubsubMessage(
      { name: "PUT", ...rest, ...(headers === undefined ? {} : { headers }) } as never,
    );
    same(frame);
    if (headers?.session?.key !== "w%" && headers?.session?.key !== "long key") {
      expect(decodePutRequest(frame)).not.toBeNull();
    }
    expect(readPutTopic(frame)).toBe(message.topic);
    same(frame.with(at % frame.byteLength, byte));
    same(frame.subarray(0, at % frame.byteLength));
  },
  dose({ gate: 2000, full: 50_000 }),
);

test("names that share a place are not taken for each other", () => {
  for (let turn = 0; turn < 2; turn++) {
    for (let name = 0; name < 500; name++) {
      const put = decodePutRequest(utf8.encode(`PUT c${name} t${name} 1\r\nsession: ${name + 1}/k${name}\r\n\r\nx`));
      expect(put as unknown).toMatchObject({
        sender: `c${name}`,
        topic: `t${name}`,
        headers: { session: { key: `k${name}` } },
      });
    }
  }
});

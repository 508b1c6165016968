/** The quick way to read a PUT says what the ordinary one says, or nothing. */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  type ClientRequestMessage,
  readPutOperation,
  toStoreOperation,
} from "../../../../src/pubsub/store/thread/client_request.ts";
import { decodePubsubMessage } from "../../../../src/pubsub/wire/decode_message.ts";
import { encodePubsubMessage } from "../../../../src/pubsub/wire/encode_message.ts";
import { type PutFrameStart, readPutDeadlineMs, readPutFrameStart } from "../../../../src/pubsub/wire/put_frame.ts";
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
  bodies: fc.array(fc.uint8Array({ minLength: 1, maxLength: 30 }), { minLength: 1, maxLength: 4 }),
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

const place = { ticket: 7, epoch: 3 };

function same(frame: Uint8Array, ...bodies: readonly Uint8Array[]): void {
  const quick = readPutOperation([frame, ...bodies], place);
  const whole = decodePubsubMessage([frame, ...bodies]);
  if (quick !== null) {
    expect(quick).toEqual(toStoreOperation(whole as ClientRequestMessage, { ...place, wait: false }) as typeof quick);
  }
  // A request is allowed and admitted by the head that was read alone, and executed as the whole says.
  const head = readPutFrameStart(frame);
  if (head === null || whole.name === null) return;
  const { name, sender, topic } = head;
  expect(whole).toMatchObject({ name, sender, topic });
  expect(readPutDeadlineMs(frame, head)).toBe(whole.headers?.deadlineMs);
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
    fc.array(fc.uint8Array({ maxLength: 3 }), { maxLength: 2 }),
  ),
  ([name, words, headers, first, last, body, bodies]) => {
    same(utf8.encode(`${name}${words.join(" ")}${first}${headers.flat().join("")}${last}${body}`), ...bodies);
  },
  dose({ gate: 2000, full: 50_000 }),
);

property(
  "of what was encoded, which it mostly reads, and of that with a byte changed",
  fc.tuple(ordinary, fc.nat(), fc.nat(255)),
  ([message, at, byte]) => {
    const { headers, bodies, ...rest } = message;
    const content = bodies.length === 1 ? { body: bodies[0] } : { batch: bodies };
    const [frame = new Uint8Array(0), ...behind] = encodePubsubMessage(
      { name: "PUT", ...rest, ...content, ...(headers === undefined ? {} : { headers }) } as never,
    );
    same(frame, ...behind);
    same(frame, ...behind.slice(1));
    if (headers?.session?.key === "k") expect(readPutOperation([frame, ...behind], place)).not.toBeNull();
    expect(readPutFrameStart(frame)).toMatchObject({ sender: message.sender, topic: message.topic });
    same(frame.with(at % frame.byteLength, byte), ...behind);
    same(frame.subarray(0, at % frame.byteLength), ...behind);
  },
  dose({ gate: 2000, full: 50_000 }),
);

test("names that share a place are not taken for each other", () => {
  for (let turn = 0; turn < 2; turn++) {
    for (let name = 0; name < 500; name++) {
      const frame = utf8.encode(`PUT c${name} t${name} 1\r\nsession: ${name + 1}/k${name}\r\n\r\nx`);
      const put = readPutOperation([frame], place);
      expect(put).toMatchObject({ client: `c${name}`, topic: `t${name}`, session: { key: `k${name}` } });
    }
  }
});

test("a body that looks like a header has no deadline", () => {
  const deadlineOf = (text: string) => {
    const frame = utf8.encode(text);
    return readPutDeadlineMs(frame, readPutFrameStart(frame) as PutFrameStart);
  };
  expect(deadlineOf("PUT bob news 1\r\nsession: 1/k%20\r\ndeadline-ms: 900\r\n\r\nx")).toBe(900);
  expect(deadlineOf("PUT bob news 1\r\nsession: 1/k\r\n\r\ndeadline-ms: 900\r\n\r\n")).toBeUndefined();
  expect(deadlineOf("PUT bob news 1\r\n\r\ndeadline-ms: 900\r\n\r\n")).toBeUndefined();
});

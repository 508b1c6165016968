import { expect, test } from "bun:test";
import { EventStreamReader } from "../../../../src/operator/ui/event_stream.ts";

const text =
  'event: hello\ndata: {"a":1}\n\n:\n\n:\n\nevent: patch\nid: x-7\ndata: {"b":"c: d"}\n\ndata: one\ndata: two\n\n';
const events = [
  { event: "hello", id: null, data: '{"a":1}' },
  { event: "patch", id: "x-7", data: '{"b":"c: d"}' },
  { event: "message", id: null, data: "one\ntwo" },
];

test("a stream has the same events wherever it is cut", () => {
  for (let first = 0; first <= text.length; first++) {
    for (let second = first; second <= text.length; second++) {
      const reader = new EventStreamReader();
      const pieces = [text.slice(0, first), text.slice(first, second), text.slice(second)];
      expect(pieces.flatMap((piece) => reader.push(piece))).toEqual(events);
    }
  }
});

test("character by character", () => {
  const reader = new EventStreamReader();
  expect([...text].flatMap((character) => reader.push(character))).toEqual(events);
});

test("an event that never ends is refused before it fills the memory", () => {
  const reader = new EventStreamReader();
  const piece = "x".repeat(8 << 20);
  expect(() => {
    for (let count = 0; count < 10; count++) reader.push(piece);
  }).toThrow("too long");
});

import { expect, test } from "bun:test";
import { TopicPutDependencies } from "../../../../src/pubsub/proxy/request_forwarder.ts";
import { readPutOrder, type TopicPutOrder } from "../../../../src/pubsub/proxy/request_traits.ts";

const place = (after: number | null, last: number, stream = "bob"): TopicPutOrder => ({ stream, last, after });
const chainsOf = (...places: readonly TopicPutOrder[]) => {
  const chains = new TopicPutDependencies<TopicPutOrder>();
  for (const one of places) chains.add(one, one);
  return (stored: TopicPutOrder) => chains.putsUnblockedBy(stored, (waits) => waits).map(({ last }) => last);
};

test("behind a put comes what waits for it, and what waits for that, in order; nothing else", () => {
  const behind = chainsOf(place(8, 9), place(2, 5), place(5, 8), place(10, 11), place(2, 5, "carol"), place(null, 1));
  expect(behind(place(null, 2))).toEqual([5, 8, 9]);
  expect(behind(place(null, 3))).toEqual([]);
  expect(behind(place(null, 2, "carol"))).toEqual([5]);
});

test("what has left is not called, and a put that waits for itself ends nothing and nobody", () => {
  const chains = new TopicPutDependencies<TopicPutOrder>();
  const places = [place(1, 2), place(2, 3), place(4, 4)];
  for (const one of places) chains.add(one, one);
  chains.delete(places[1] as TopicPutOrder, places[1] as TopicPutOrder);
  expect(chains.putsUnblockedBy(place(null, 1), (waits) => waits)).toEqual([place(1, 2)]);
  expect(chains.putsUnblockedBy(place(null, 4), (waits) => waits)).toEqual([place(4, 4)]);
});

test("puts of one session into one topic are a line, and names cannot be mistaken for each other", () => {
  const chainOf = (sender: string, topic: string, number = 1) => {
    const headers = { session: { number, key: "k" }, firstUnacked: 1, after: 4 };
    return readPutOrder({
      name: "PUT",
      sender,
      topic,
      counter: 5,
      batch: [new Uint8Array(1), new Uint8Array(1)],
      headers,
    });
  };
  expect(chainOf("bob", "news")).toMatchObject({ last: 6, after: 4 });
  const lines = [chainOf("bob", "news"), chainOf("bob", "news", 2), chainOf("bob n", "ews"), chainOf("bob", "n ews")];
  expect(new Set(lines.map((chain) => chain?.stream)).size).toBe(4);
  expect(readPutOrder({ name: "PUT", sender: "bob", topic: "news", counter: 5, body: new Uint8Array(1) })).toBeNull();
});

/** One of each client in turn, whatever is taken out in between. */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { FairQueue, type FairQueueEntry } from "../../../../src/pubsub/proxy/fair_queue.ts";
import { property } from "../../../support/property.ts";

test("clients take turns, each in its own order", () => {
  const queue = new FairQueue<string, string>();
  for (const item of ["a1", "a2", "a3", "a4", "b1", "c1", "c2"]) queue.push(item.charAt(0), item);
  expect(queue.takeAll()).toEqual(["a1", "b1", "c1", "a2", "c2", "a3", "a4"]);
});

test("who comes while others wait is next after one of each", () => {
  const queue = new FairQueue<string, string>();
  for (const item of ["a1", "a2", "a3"]) queue.push("a", item);
  expect(queue.shift()).toBe("a1");
  queue.push("b", "b1");
  expect(queue.takeAll()).toEqual(["a2", "b1", "a3"]);
});

test("what was taken out does not come, and its client keeps no turn for it", () => {
  const queue = new FairQueue<string, string>();
  const [a1, , b1] = ["a1", "a2", "b1", "c1"].map((item) => queue.push(item.charAt(0), item)) as FairQueueEntry<
    string
  >[];
  queue.remove(a1 as FairQueueEntry<string>);
  queue.remove(b1 as FairQueueEntry<string>);
  queue.remove(b1 as FairQueueEntry<string>);
  expect(queue.length).toBe(2);
  expect(queue.peek()).toBe("a2");
  expect(queue.takeAll()).toEqual(["a2", "c1"]);
  expect([queue.length, queue.peek(), queue.shift()]).toEqual([0, null, null]);
});

const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant("push" as const), client: fc.nat(3) }),
    fc.record({ do: fc.constant("shift" as const) }),
    fc.record({ do: fc.constant("remove" as const), which: fc.nat(100) }),
  ),
  { maxLength: 80 },
);

property("nothing is lost, nothing comes twice, and every client keeps its order", steps, (all) => {
  const queue = new FairQueue<number, { client: number; number: number }>();
  const places: FairQueueEntry<{ client: number; number: number }>[] = [];
  const live = new Map<number, number[]>();
  const size = () => [...live.values()].reduce((sum, { length }) => sum + length, 0);
  for (const step of all) {
    if (step.do === "push") {
      const item = { client: step.client, number: places.length };
      places.push(queue.push(step.client, item));
      live.set(step.client, [...live.get(step.client) ?? [], item.number]);
    } else if (step.do === "shift") {
      const item = queue.shift();
      if (item === null) expect(size()).toBe(0);
      else expect(live.get(item.client)?.shift()).toBe(item.number);
    } else {
      const place = places[step.which % Math.max(1, places.length)];
      const item = place?.item ?? null;
      if (item !== null) {
        live.set(item.client, (live.get(item.client) ?? []).filter((number) => number !== item.number));
      }
      if (place !== undefined) queue.remove(place);
    }
    expect(queue.length).toBe(size());
  }
});

import { expect, test } from "bun:test";
import { RequestStallMonitor, type StallWatchedRequest } from "../../../../src/pubsub/client/requester.ts";
import { FakeClock } from "../../../support/fake_clock.ts";

function watching() {
  const clock = new FakeClock();
  const told: string[] = [];
  const tell = ({ name }: { readonly name: string }) => void told.push(name);
  const watch = new RequestStallMonitor<StallWatchedRequest & { readonly name: string }>(clock, {
    afterMs: 3000,
    tell,
  });
  const begin = (name: string, sinceMs = clock.now()) => {
    const request = { name, sinceMs };
    watch.begin(request);
    return request;
  };
  return { clock, told, watch, begin };
}

test("the oldest request's trouble is told once, and again only when there was an answer in between", async () => {
  const { clock, told, watch, begin } = watching();
  const first = begin("first");
  await clock.advance(1000);
  begin("second");
  await clock.advance(1999);
  expect(told).toEqual([]);
  await clock.advance(1);
  expect(told).toEqual(["first"]);
  await clock.advance(60_000);
  begin("third");
  await clock.advance(60_000);
  expect(told).toEqual(["first"]);
  watch.end(first);
  watch.noteProgress();
  begin("fourth");
  expect(told).toEqual(["first", "second"]);
});

test("requests that are answered in time are never told, however many follow each other", async () => {
  const { clock, told, watch, begin } = watching();
  for (let number = 0; number < 20; number++) {
    const request = begin(`${number}`);
    await clock.advance(2900);
    watch.noteProgress();
    watch.end(request);
  }
  expect(told).toEqual([]);
});

test("what is held back on purpose is in trouble only behind that, or when its connection is lost", async () => {
  const { clock, told, begin } = watching();
  const held = begin("held", clock.now() + 20_000);
  await clock.advance(19_000);
  expect(told).toEqual([]);
  held.sinceMs = clock.now(); // lost
  await clock.advance(2900);
  expect(told).toEqual([]);
  await clock.advance(3100); // it looks at least every three seconds
  expect(told).toEqual(["held"]);
});

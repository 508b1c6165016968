import { expect, test } from "bun:test";
import { TopicReadings } from "../../../../commands/operator/topic_readings.ts";
import type { PageAnswer, PageContext } from "../../../../commands/product.ts";

const context = { zk: () => undefined, signal: new AbortController().signal } as unknown as PageContext;
const names = (count: number) => Array.from({ length: count }, (_, index) => `t${index}`);

/** Each answer comes a second after the previous one, with ten more messages. */
function answering(isDown: (topic: string) => boolean = () => false): PageAnswer {
  let count = 0;
  return (query) => {
    const topic = query.get("topic") ?? "";
    if (isDown(topic)) return Promise.reject(new Error("its server is offline"));
    count++;
    return Promise.resolve({
      at: new Date(1_000_000 + count * 1000).toISOString(),
      end: String(100 + count * 10),
      subscribers: [{ client: "slow", position: "1", pending: 7 }],
      subscriber_count: 2,
    });
  };
}

test("many topics are read in turns, and there are totals only when all of them are known", async () => {
  const readings = new TopicReadings(answering());
  const topics = names(100);
  const first = await readings.readSome(topics, context);
  expect(readings.totals(100, 1_000_000)).toEqual({ published: null, behind: null });
  const second = await readings.readSome(topics, context);
  expect(new Set([...first, ...second]).size).toBe(100);
  expect(readings.totals(100, 1_000_000)).toEqual({ published: null, behind: 700 });
});

test("a rate needs two readings; an old reading is not counted", async () => {
  const readings = new TopicReadings(answering());
  await readings.readSome(["a"], context);
  expect(readings.readingOf("a")).toMatchObject({ rate: null, behind: 7, subscribers: 2 });
  await readings.readSome(["a"], context);
  expect(readings.readingOf("a")?.rate).toBe(10);
  expect(readings.totals(1, 1_000_000)).toEqual({ published: 10, behind: 7 });
  expect(readings.totals(1, 1_400_000)).toEqual({ published: null, behind: null });
});

test("a topic whose server does not respond has no reading, and one that is gone is forgotten", async () => {
  let isDown = false;
  const readings = new TopicReadings(answering((topic) => isDown && topic === "a"));
  expect(await readings.readSome(["a", "b"], context)).toEqual(["a", "b"]);
  isDown = true;
  expect(await readings.readSome(["a", "b"], context)).toEqual(["b"]);
  expect(readings.readingOf("a")).toBeNull();
  await readings.readSome(["c"], context);
  expect(readings.readingOf("b")).toBeNull();
});

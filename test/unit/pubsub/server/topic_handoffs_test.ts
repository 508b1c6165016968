import { expect, test } from "bun:test";
import type { HandOverResult } from "../../../../src/pubsub/ownership/owned_topic.ts";
import type { Status } from "../../../../src/pubsub/server/response_message.ts";
import { HandOvers } from "../../../../src/pubsub/server/topic_handoffs.ts";
import { handOversMax } from "../../../../src/pubsub/server/server_limits.ts";

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

function rig(handOver: (topic: string, to: string, epoch: number | null) => Promise<HandOverResult>) {
  const answers: Status[] = [];
  const handOvers = new HandOvers({
    server: "s1",
    ownership: { handOver },
    reply: (_, status) => void answers.push(status),
  });
  const take = (topic: string) => {
    handOvers.take([], { name: "MERGE", sender: "op", topic, address: "s2", headers: { epoch: 3 } });
  };
  return { handOvers, answers, take };
}

test("a merge is answered by what has become of the topic, and moves what was meant", async () => {
  const asked: unknown[] = [];
  const results: (() => Promise<HandOverResult>)[] = [
    () => Promise.resolve({ kind: "moved", epoch: 4 }),
    () => Promise.resolve({ kind: "kept", why: "s2 is not there" }),
    () => Promise.reject(new Error("the session ended")),
  ];
  const { take, answers } = rig((...words) => {
    asked.push(words);
    return (results[asked.length - 1] as () => Promise<HandOverResult>)();
  });
  for (const topic of ["a", "b", "c"]) take(topic);
  await settled();
  expect(asked).toEqual([["a", "s2", 3], ["b", "s2", 3], ["c", "s2", 3]]);
  expect(answers.map(({ status, headers }) => [status, headers?.epoch, headers?.unknown])).toEqual([
    ["OK", 4, undefined],
    ["OVERLOADED", undefined, undefined],
    ["ERROR", undefined, true],
  ]);
});

test("so many are on their way at once, and not one more", () => {
  const { take, answers, handOvers } = rig(() => new Promise(() => {}));
  for (let topic = 0; topic <= handOversMax; topic++) take(`t${topic}`);
  expect(answers.map(({ status }) => status)).toEqual(["OVERLOADED"]);
  expect(handOvers.size).toBe(handOversMax);
});

test("a server that leaves gives away all it has, what came meanwhile too, and gives up on what cannot be moved", async () => {
  const here = new Set(["a", "b", "stuck"]);
  let isLate = false;
  const { handOvers } = rig((topic) => {
    if (topic === "stuck") return Promise.resolve({ kind: "kept", why: "refused" });
    here.delete(topic);
    if (!isLate) here.add("late");
    isLate = true;
    return Promise.resolve({ kind: "moved", epoch: 2 });
  });
  await handOvers.all(() => [...here], () => ["s2", "s3"]);
  expect([...here]).toEqual(["stuck"]);
  await handOvers.all(() => ["x"], () => []);
});

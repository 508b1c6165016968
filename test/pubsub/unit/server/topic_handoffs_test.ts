import { expect, test } from "bun:test";
import type { TopicHandoffResult } from "../../../../src/pubsub/ownership/topic_state.ts";
import type { ResponseStatusMessage } from "../../../../src/pubsub/status_message.ts";
import { TopicHandoffs } from "../../../../src/pubsub/server/topic_handoffs.ts";
import { topicHandoffsMax } from "../../../../src/pubsub/server/server_limits.ts";

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

function rig(handOff: (topic: string, to: string, epoch: number | null) => Promise<TopicHandoffResult>) {
  const responses: ResponseStatusMessage[] = [];
  const handoffs = new TopicHandoffs({
    server: "s1",
    ownership: { handOff },
    reply: (_, status) => void responses.push(status),
  });
  const take = (topic: string) => {
    handoffs.handle([], { name: "MERGE", sender: "op", topic, address: "s2", headers: { epoch: 3 } });
  };
  return { handoffs, responses, take };
}

test("a merge is answered by what has become of the topic, and moves what was meant", async () => {
  const asked: unknown[] = [];
  const results: (() => Promise<TopicHandoffResult>)[] = [
    () => Promise.resolve({ kind: "moved", epoch: 4 }),
    () => Promise.resolve({ kind: "kept", why: "s2 is not there" }),
    () => Promise.reject(new Error("the session ended")),
  ];
  const { take, responses } = rig((...words) => {
    asked.push(words);
    return (results[asked.length - 1] as () => Promise<TopicHandoffResult>)();
  });
  for (const topic of ["a", "b", "c"]) take(topic);
  await settled();
  expect(asked).toEqual([["a", "s2", 3], ["b", "s2", 3], ["c", "s2", 3]]);
  expect(responses.map(({ status, headers }) => [status, headers?.epoch, headers?.unknown])).toEqual([
    ["OK", 4, undefined],
    ["OVERLOADED", undefined, undefined],
    ["ERROR", undefined, true],
  ]);
});

test("so many are on their way at once, and not one more", () => {
  const { take, responses, handoffs } = rig(() => new Promise(() => {}));
  for (let topic = 0; topic <= topicHandoffsMax; topic++) take(`t${topic}`);
  expect(responses.map(({ status }) => status)).toEqual(["OVERLOADED"]);
  expect(handoffs.size).toBe(topicHandoffsMax);
});

test("a server that leaves gives away all topics, later ones too, and gives up on what cannot be moved", async () => {
  const here = new Set(["a", "b", "stuck"]);
  let isLate = false;
  const { handoffs } = rig((topic) => {
    if (topic === "stuck") return Promise.resolve({ kind: "kept", why: "refused" });
    here.delete(topic);
    if (!isLate) here.add("late");
    isLate = true;
    return Promise.resolve({ kind: "moved", epoch: 2 });
  });
  await handoffs.handOffAll(() => [...here], () => ["s2", "s3"]);
  expect([...here]).toEqual(["stuck"]);
  await handoffs.handOffAll(() => ["x"], () => []);
});

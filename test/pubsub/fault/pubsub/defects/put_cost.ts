/**
 * What a put costs a server, on a topic that is empty and on one that is not: in processor time, which a busy machine
 * does not stretch.
 */
import { readFileSync } from "node:fs";
import { bytesOf } from "../../../../support/pubsub_talker.ts";
import { type Stage, topic } from "./stage.ts";

const puts = 60;
const backlog = 6000;
const subscribers = 30;
const batch = 200;
/** proc(5): of the fields behind the name's parenthesis, and their unit. */
const [userField, systemField, tickMs] = [11, 12, 10];

export interface PutCost {
  /** Of some puts into an empty topic, and into one with a backlog and many subscribers, in milliseconds. */
  readonly emptyMs: number;
  readonly fullMs: number;
}

export async function measurePutCost(stage: Stage): Promise<PutCost> {
  const { pid } = await stage.start();
  const subscribe = (sender: string) => stage.say.ask({ name: "SUBSCRIBE", sender, topic });
  await subscribe("reader 0");
  let counter = 1;
  const costMs = async () => {
    const before = cpuMs(pid);
    for (let count = 0; count < puts; count++, counter++) {
      await stage.say.ask({ name: "PUT", sender: "bob", topic, counter, body: bytesOf("x"), headers: {} });
    }
    return cpuMs(pid) - before;
  };
  await costMs(); // what is only slow at first
  const emptyMs = await costMs();
  const some = Array.from({ length: batch }, (_, place) => bytesOf(`body ${place}`.padEnd(200)));
  for (let put = 0; put < backlog; put += batch, counter += batch) {
    await stage.say.ask({ name: "PUT", sender: "bob", topic, counter, batch: some, headers: {} });
  }
  for (let number = 1; number < subscribers; number++) await subscribe(`reader ${number}`);
  return { emptyMs, fullMs: await costMs() };
}

function cpuMs(pid: number): number {
  const fields = (readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").pop() ?? "").split(" ");
  return (Number(fields[userField]) + Number(fields[systemField])) * tickMs;
}

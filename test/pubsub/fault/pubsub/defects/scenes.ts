/** What clients and faults do so that a defect shows. With the program as it is nothing is wrong with any of them. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../../../../support/eventually.ts";
import type { BaselineLimits } from "../judge.ts";
import { type Stage, topic } from "./stage.ts";

/** Resolves with the limits to judge by, where they are not the usual ones. */
export type Scene = (stage: Stage) => Promise<BaselineLimits | void>;

export async function restartAfterGets(stage: Stage): Promise<void> {
  const server = await stage.start();
  for (const client of ["alice", "carol"]) await stage.subscribe(client);
  for (let counter = 1; counter <= 5; counter++) await stage.put("bob", counter, `bob-${counter}`);
  for (let count = 0; count < 4; count++) await stage.get("alice");
  await server.kill();
  await server.start();
  stage.loseState("alice");
  for (const client of ["alice", "carol"]) await stage.getAll(client);
}

export async function publisherBeginsAgain(stage: Stage): Promise<void> {
  await stage.start();
  await stage.subscribe("alice");
  for (let counter = 1; counter <= 3; counter++) await stage.put("bob", counter, `first-${counter}`);
  stage.loseState("bob");
  for (let counter = 1; counter <= 3; counter++) await stage.put("bob", counter, `second-${counter}`, { life: 2 });
  await stage.getAll("alice");
}

/** Around its first sync each put is killed at a later step, and asked again. */
export async function killedAtEachStepOfAPut(stage: Stage): Promise<void> {
  const server = await stage.start();
  stage.say.attemptMs = 300;
  await stage.subscribe("alice");
  await stage.put("bob", 1, "bob-1");
  for (let step = 4; step <= 7; step++) {
    server.faults.killAt(step);
    const put = stage.put("bob", step, `bob-${step}`);
    let isDone = false;
    put.then(() => isDone = true, () => isDone = true);
    await eventually(() => isDone || !server.alive, { withinMs: 10_000, what: "the put or the server to end" });
    if (server.faults.disarm()) await server.ended();
    server.faults.killAt(0);
    if (!server.alive) await server.start();
    await put;
  }
  await stage.getAll("alice");
}

/** The sixth goes through another proxy, which is faster. */
export async function countersInAnotherOrder(stage: Stage): Promise<void> {
  await stage.start();
  await stage.subscribe("alice");
  for (let counter = 1; counter <= 4; counter++) await stage.put("bob", counter, `bob-${counter}`);
  await stage.put("bob", 6, "bob-6", { life: 2 });
  await stage.put("bob", 5, "bob-5");
  await stage.put("bob", 7, "bob-7");
  await stage.getAll("alice");
}

/** The answer of the last put is lost, and the topic moves before it is asked again. */
export async function retryAtTheNewOwner(stage: Stage): Promise<void> {
  await stage.start("s1");
  await stage.start("s2");
  await stage.subscribe("alice");
  for (let counter = 1; counter <= 2; counter++) await stage.put("bob", counter, `bob-${counter}`, { session: 1 });
  await stage.put("bob", 3, "bob-3", { session: 1, unheard: true });
  const { id } = await stage.say.endpoint(topic);
  await stage.merge(id === "s1" ? "s2" : "s1");
  await stage.put("bob", 3, "bob-3", { session: 1, resumed: true });
  await stage.getAll("alice");
}

export async function idsThatLookAlike(stage: Stage): Promise<void> {
  await stage.start();
  for (const client of ["a:1", "a_1"]) await stage.subscribe(client);
  for (let counter = 1; counter <= 3; counter++) await stage.put("bob", counter, `bob-${counter}`);
  for (const client of ["a:1", "a_1"]) await stage.getAll(client);
}

const muchBytes = 64 << 10;
const muchCount = 400;
const diskBytes = 16 << 20;

export async function muchIsHad(stage: Stage): Promise<BaselineLimits> {
  const server = await stage.start();
  await stage.subscribe("alice");
  const putAndGet = async (first: number, count: number) => {
    for (let counter = first; counter < first + count; counter += 20) {
      const some = Array.from({ length: 20 }, (_, place) => counter + place);
      await Promise.all(some.map((each) => stage.put("bob", each, `bob-${each}`, { bytes: muchBytes })));
      await stage.getAll("alice");
    }
  };
  const sample = (when: "baseline" | "end") =>
    stage.writer.sample({ of: server.id, when, diskBytes: stage.diskBytes(server) });
  await putAndGet(1, 20);
  const before = stage.diskBytes(server);
  sample("baseline");
  await putAndGet(21, muchCount);
  // What is not needed goes when there is nothing else to do; if it goes.
  await eventually(() => stage.diskBytes(server) < before + diskBytes, { withinMs: 4000, isExact: true }).catch(
    () => {},
  );
  sample("end");
  return { diskBytes, rssBytes: Infinity, descriptors: Infinity };
}

/** A proxy that knows nothing sends a put to the server that has not the topic. */
export async function twoServersAreAsked(stage: Stage): Promise<void> {
  await stage.start("s1");
  await stage.start("s2");
  await stage.subscribe("alice");
  await stage.seeNode();
  await stage.put("bob", 1, "bob-1");
  const { id } = await stage.say.endpoint(topic);
  await stage.put("ben", 1, "ben-1", { to: await stage.endpointOf(id === "s1" ? "s2" : "s1") });
  await stage.put("bob", 2, "bob-2");
  await stage.getAll("alice");
  await stage.seeNode();
}

export async function powerIsLost(stage: Stage): Promise<void> {
  const server = await stage.start();
  await stage.subscribe("alice");
  // From here on it is about puts. A start that is lost would be seen by the server itself: its data is older than what
  // was.
  server.settle();
  // All at once: after a second its age is noted, and it would see that as well.
  const puts = Array.from({ length: 10 }, (_, n) => stage.put(`bob${n}`, 1, `bob${n}-1`));
  await Promise.all(puts);
  await server.kill();
  server.faults.losePower();
  // By the index that SQLite keeps beside the log a server would see itself what is lost, and not start.
  rmSync(join(server.dataDir, "topics.sqlite-shm"), { force: true });
  await server.start();
  for (let counter = 11; counter <= 13; counter++) await stage.put("bob", counter, `bob-${counter}`);
  await stage.getAll("alice");
}

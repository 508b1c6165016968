/** What is under way when a session ends, and what those are told who ask meanwhile. */
import { expect, test } from "bun:test";
import { eventually } from "../../../support/eventually.ts";
import { FakeTree } from "../../../support/fake_tree.ts";
import { FakeZooKeeper } from "../../../support/fake_zookeeper.ts";
import { hastyClock } from "../../../support/hasty_clock.ts";
import { OwnershipCrew } from "../../../support/ownership_crew.ts";

async function crewOf(...ids: string[]) {
  const tree = new FakeTree();
  const clock = hastyClock(100);
  const connect = () => Promise.resolve(new FakeZooKeeper(tree, clock, { timeoutMs: 1e9 }));
  const crew = new OwnershipCrew("/baton", connect, clock);
  crew.handoffMs = 1e6;
  for (const id of ids) await crew.start(id);
  return crew;
}

test("a seal that the disk is slow with is done before anything is decided anew", async () => {
  await using crew = await crewOf("s1", "s2");
  const router = await crew.router();
  await crew.put(router, "t", "a");
  const server = crew.servers.get("s1");
  const { seal } = server?.store ?? crew.store("s1");
  const disk = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const store = crew.store("s1");
  store.seal = async (...words) => {
    asked.resolve();
    await disk.promise;
    return await seal.apply(store, words);
  };
  const moving = server?.ownership.handOff("t", "s2").then(() => "done", () => "given up");
  await asked.promise;
  const first = server?.zk as FakeZooKeeper;
  first.expire();
  await eventually(() => server?.ownership.isRegistered === false);
  for (const id of ["s3", "s4", "s5"]) await crew.start(id); // time enough to open another session
  expect(server?.zk === first).toBe(true);
  disk.resolve();
  expect(await moving).toBe("given up");
  // Sealed is sealed: the next session hands it over.
  expect(await crew.put(router, "t", "b")).toEqual({ seq: 2, by: "s2" });
});

test("a server that has not read its topics yet does not know how many it has", async () => {
  await using crew = await crewOf("s1");
  await crew.put(await crew.router(), "t", "a");
  await crew.servers.get("s1")?.stop();
  const store = crew.store("s1");
  const { copiesOf } = store;
  const disk = Promise.withResolvers<void>();
  store.copiesOf = async (topic) => {
    await disk.promise;
    return await copiesOf.call(store, topic);
  };
  const { ownership } = await crew.start("s1");
  expect([ownership.isRegistered, ownership.hasReadTopics, ...ownership.servedTopics()]).toEqual([true, false]);
  disk.resolve();
  await eventually(() => ownership.hasReadTopics);
  expect([...ownership.servedTopics()]).toEqual(["t"]);
});

test("what fails before the seal leaves the topic where it is, at its epoch, and served all the time", async () => {
  await using crew = await crewOf("s1", "s2");
  const router = await crew.router();
  await crew.put(router, "t", "a");
  const one = crew.servers.get("s1");
  for (const [pieces, why] of [[0, "no room"], [1, "s2 broke off"]] as const) {
    crew.unwilling.set("s2", pieces);
    expect(await one?.ownership.handOff("t", "s2")).toEqual({ kind: "kept", why });
    expect(one?.ownership.currentPermit("t")?.epoch).toBe(1);
    expect(one?.store.row("t").copy).toMatchObject({ epoch: 1, sealedFor: null });
  }
  expect(await one?.ownership.handOff("t", "s9")).toMatchObject({
    kind: "kept",
    why: expect.stringContaining("not running"),
  });
  expect(await crew.put(router, "t", "b")).toEqual({ seq: 2, by: "s1" });
  crew.unwilling.clear();
  expect(await one?.ownership.handOff("t", "s2")).toMatchObject({ kind: "moved", epoch: 2 });
  expect(await crew.put(router, "t", "c")).toEqual({ seq: 3, by: "s2" });
});

test("what is being received is given up with the session", async () => {
  await using crew = await crewOf("s1", "s2");
  const router = await crew.router();
  await crew.put(router, "t", "a");
  crew.isNetworkSlow = true;
  const one = crew.servers.get("s1");
  const two = crew.servers.get("s2");
  const moving = one?.ownership.handOff("t", "s2").catch(() => {});
  await eventually(() => crew.transfers.length === 1);
  const copy = one?.store.row("t").copy;
  const isAsked = Promise.withResolvers<void>();
  // deno-lint-ignore require-yield
  async function* never(): AsyncGenerator<Uint8Array, void, void> {
    isAsked.resolve();
    await new Promise(() => {});
  }
  const content = { incarnation: copy?.incarnation ?? "", baseOffset: 0, owner: "s1", epoch: 1 };
  const receiving = two?.ownership.receive("t", content, { pieces: never(), hash: () => "" }).then(
    () => "done",
    () => "given up",
  );
  await isAsked.promise;
  (two?.zk as FakeZooKeeper).expire();
  expect(await receiving).toBe("given up");
  await eventually(() => two?.ownership.isRegistered);
  expect(two?.store.row("t").staged).toBeNull();
  for (const deliver of crew.transfers) expect(await deliver()).toEqual({ kind: "taken" });
  expect(await crew.put(router, "t", "b")).toEqual({ seq: 2, by: "s2" });
  void moving;
});

test("what is staged at a higher epoch than the tree knows of waits, and asks now and then", async () => {
  await using crew = await crewOf("s1");
  const router = await crew.router();
  await crew.put(router, "t", "a");
  const { incarnation = "" } = crew.store("s1").row("t").copy ?? {};
  crew.store("s2").row("t").staged = { incarnation, baseOffset: 0, owner: "s1", epoch: 7, log: ["a"], cursor: 0 };
  const two = await crew.start("s2");
  const { sent } = two.zk as FakeZooKeeper;
  await eventually(() => sent.filter((name) => name === "sync").length >= 2);
  for (const id of ["s3", "s4", "s5"]) await crew.start(id); // seconds, by this clock
  expect(sent.length).toBeLessThan(60);
  expect(two.store.row("t").staged?.epoch).toBe(7);
  expect(await crew.put(router, "t", "b")).toEqual({ seq: 2, by: "s1" });
});

test("while a topic is on its way, whoever asks for it is told so at once", async () => {
  await using crew = await crewOf("s1", "s2");
  const router = await crew.router();
  await crew.put(router, "t", "a");
  crew.cutOff.add("s2");
  const one = crew.servers.get("s1");
  const moving = one?.ownership.handOff("t", "s2");
  await eventually(() => crew.transfers.length >= 2);
  for (let turn = 0; turn < 20; turn++) expect(await one?.ownership.availability("t")).toEqual({ kind: "moving" });
  crew.cutOff.delete("s2");
  expect((await moving)?.kind).toBe("moved");
});

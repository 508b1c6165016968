/** What a pool's run asks the servers for, and in which order. */
import { expect, spyOn, test } from "bun:test";
import { acquireLock } from "../../../../src/coordination/lock/acquire_lock.ts";
import type { LockPath } from "../../../../src/coordination/nodes/node_paths.ts";
import { poolPath } from "../../../../src/coordination/pool/pool_path.ts";
import { PoolItemRecords } from "../../../../src/coordination/pool/item_records.ts";
import { PoolPermits } from "../../../../src/coordination/pool/run_pool_items.ts";
import { childrenIn } from "../../../support/fake_tree.ts";
import { LockBench } from "../../../support/lock_bench.ts";
import { poolInfo, poolOfC, poolRunIn } from "../../../support/pool_run.ts";

const items = (count: number) => Array.from({ length: count }, (_, index) => `${index + 1}`);

const joinsThenFrees = ["multi", "delete", "multi"];

for (
  const [what, options, expected] of [
    ["--loop and --done-ttl: the component is free before an item is asked for", {}, joinsThenFrees],
    ["--loop: the component is free before an item is asked for", { rememberMs: null }, joinsThenFrees],
    ["--loop and a query: the component is held until the first items are chosen", {
      rememberMs: null,
      listsAgain: true,
    }, ["multi", "delete"]],
    ["one turn: the component is held until the items are chosen", { loop: false }, ["multi", "multi", "delete"]],
  ] as const
) {
  test(what, async () => {
    const bench = new LockBench();
    const zk = bench.client();
    let listedAt = 0;
    const list = () => {
      listedAt ||= zk.sent.length;
      return Promise.resolve(["1", "2", "3"]);
    };
    await poolRunIn(bench, zk, { ...options, list }).ended;
    const asked = zk.sent.slice(listedAt).filter((name) => name === "delete" || name === "multi");
    expect<string[]>(asked.slice(0, expected.length)).toEqual([...expected]);
  });
}

test("settings are shown and read in the write that asks for the component: two requests, and no wait", async () => {
  const bench = new LockBench();
  await poolRunIn(bench, bench.client()).ended; // what is needed is there
  const zk = bench.client();
  const list = () => Promise.resolve([]);
  const { ended } = poolRunIn(bench, zk, { loop: false, rememberMs: null, closesSession: true, list });
  const settings = ["create", "getChildren"];
  const component = ["create", "getData", "getChildren", "getChildren"];
  expect(zk.sent).toEqual([...component, ...settings]);
  await ended;
  const shared = ["getChildren", "getChildren", "multi", "exists"]; // beside the list
  expect(zk.sent.slice(0, 12)).toEqual([...component, ...settings, "multi", ...shared, "delete"]);
});

for (const isCrowded of [false, true]) {
  const first = isCrowded ? "any of those that come next when others list too" : "the list's first";
  test(`the first item is ${first}`, async () => {
    using _ = spyOn(Math, "random").mockReturnValue(0.5);
    const bench = new LockBench();
    const other = bench.client();
    const held = isCrowded
      ? await bench.within(acquireLock(other, "c", { path: poolOfC.component, clock: bench.clock }))
      : null;
    const { ended, ran } = poolRunIn(bench, bench.client(), {
      wait: 1000,
      list: () => Promise.resolve(items(100)),
    });
    await bench.clock.advance(0);
    expect(ran.length === 0).toBe(isCrowded);
    await held?.release();
    expect(await ended).toMatchObject({ done: 100 });
    expect(ran[0]).toBe(isCrowded ? "51" : "1");
  });
}

test("what was busy is looked at once more, and not tried where it still is, without a place in a queue", async () => {
  const bench = new LockBench();
  const other = bench.client();
  const busy = items(40).slice(10).map((item) => poolOfC.item(item));
  for (const path of busy) {
    await bench.within(acquireLock(other, "item", { path, clock: bench.clock }));
  }
  const zk = bench.client();
  const tried: string[] = [];
  const { multi } = zk;
  zk.multi = (requests) => {
    if (requests[0]?.type === "createContainer") tried.push(requests[0].path);
    return multi.call(zk, requests);
  };
  const looked: string[] = [];
  const { exists } = zk;
  zk.exists = (path, options) => {
    looked.push(path);
    return exists.call(zk, path, options);
  };
  const queued: string[] = [];
  const { create } = zk;
  zk.create = (path, ...rest) => {
    queued.push(path);
    return create.call(zk, path, ...rest);
  };
  const { ended, ran } = poolRunIn(bench, zk, { list: () => Promise.resolve(items(40)) });
  expect(await ended).toMatchObject({ done: 10, busy: 30 });
  expect(ran).toEqual(items(10));
  expect(tried.filter((path) => busy.some(({ lock }) => path === lock)).length).toBe(2);
  expect(looked.filter((path) => busy.some(({ holders }) => path === holders)).length).toBe(2 * 30);
  expect(queued.filter((path) => busy.some(({ queue }) => path.startsWith(queue)))).toEqual([]);
});

test("items that share a lock are run one after the other, and none is left out", async () => {
  const bench = new LockBench();
  const path = poolPath("c", { templates: { component: "/{component}", item: "/{component}/{1}" } });
  const list = () => Promise.resolve(["a 1", "a 2", "b 1", "a 3"]);
  const { ended, ran } = poolRunIn(bench, bench.client(), { path, list, jobs: 3 });
  expect(await ended).toMatchObject({ claimed: 4, done: 4, busy: 0 });
  expect([...ran].sort()).toEqual(["a 1", "a 2", "a 3", "b 1"]);
});

test("an item whose lock would be the component's, or within it, is refused before anything is run", async () => {
  const templates = [
    ["/x/{component}", "/x/{item}", "c"],
    ["/x/{component}", "/x/{1}", "c"],
    ["/x/{component}", "/x/{component}/{item}", "h"],
    ["/x/{component}", "/x/{component}/{1}", "q"],
  ] as const;
  for (const [component, item, name] of templates) {
    const bench = new LockBench();
    const path = poolPath("c", { templates: { component, item } });
    const { ended, ran } = poolRunIn(bench, bench.client(), { path, list: () => Promise.resolve(["a", name]) });
    const { code, message } = await ended.then(() => ({ code: "none", message: "" }), (thrown) => thrown);
    expect([code, message]).toEqual(["CONFIG", expect.stringContaining(`Item "${name}" would have its lock at "/x/`)]);
    expect(ran).toEqual([]);
  }
});

for (
  const [what, options, code] of [
    ["a loop that has items left", {}, "UNREACHABLE"],
    ["a loop with --total that has items left", { total: 2 }, "UNREACHABLE"],
    ["one turn that has items left for the next call", { loop: false }, "none"],
    ["a loop that has had them all", { list: () => Promise.resolve(["1"]) }, "none"],
  ] as const
) {
  test(`when no server answers any more, and the job ends well before that is too late: ${what}`, async () => {
    const bench = new LockBench();
    const zk = bench.client();
    const run = () => {
      zk.session.renew(bench.clock.now());
      return Promise.resolve(
        { result: "done", what: "", mayRetry: false, stopsPool: false, keepsLock: false } as const,
      );
    };
    const { ended } = poolRunIn(bench, zk, { ...options, run });
    expect((await ended.then(() => ({ code: "none" }), (thrown) => thrown)).code).toBe(code);
  });
}

test("what a record costs: no request of its own for an item that runs alone, one for a requested list", async () => {
  const bench = new LockBench();
  const { clock } = bench;
  const sharing = bench.client(); // keeps the records, so that nothing is deleted at the end
  await bench.within(new PoolItemRecords(sharing, { path: poolOfC, acl: sharing.acl, clock }).joinSharedList());
  await poolRunIn(bench, bench.client()).ended; // what is needed is there
  const perItem = async (more: Parameters<typeof poolRunIn>[2], count: number) => {
    const zk = bench.client();
    let lists = 1;
    const list = () => Promise.resolve(lists-- > 0 ? items(count).map((item) => `${count}-${item}`) : []);
    expect(await poolRunIn(bench, zk, { rememberMs: null, list, ...more }).ended).toMatchObject({ done: count });
    return zk.sent.filter((name) => name === "multi" || name === "setData").length;
  };
  const fixed = await perItem({}, 20) - await perItem({}, 10);
  expect(fixed).toBe(2 * 10); // taken, ended
  const listed = { listsAgain: true, jobs: 20 };
  expect(await perItem(listed, 21) - await perItem(listed, 11)).toBe(2 * 10);
});

test("permits that were lost for a moment, in a session that lives on, do not block their own run", async () => {
  const bench = new LockBench();
  const zk = bench.client();
  const { clock } = bench;
  const stop = new AbortController().signal;
  const options = { total: 1, path: poolOfC, wait: "none", clock, info: poolInfo, acl: undefined, stop } as const;
  const permits = new PoolPermits(zk, "c", options);
  expect(await bench.within(permits.tryEnsureFree(1))).toBe(true);
  zk.session.renew(clock.now());
  expect(permits.freePermit()).toBeUndefined();
  zk.session.renew(clock.now() + 60_000);
  expect(await bench.within(permits.tryEnsureFree(1))).toBe(true);
});

test("the permit of a job that could not be ended stays with it, as its lock does", async () => {
  const bench = new LockBench();
  const breach = { result: "failed", what: "", mayRetry: false, stopsPool: true, keepsLock: true } as const;
  const { ended } = poolRunIn(bench, bench.client(), { run: () => Promise.resolve(breach), total: 1 });
  expect(await ended).toMatchObject({ failed: 1, remaining: 2 });
  const inUse = (path: LockPath) => childrenIn(bench.tree.nodes, path.holders).length;
  expect([inUse(poolOfC.item("1")), inUse(poolOfC.total), inUse(poolOfC.component)]).toEqual([1, 1, 0]);
});

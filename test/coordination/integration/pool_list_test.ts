/** Lists of a pool that are from before the end of an item they name, on real servers. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { clearPoolResults } from "../../../src/coordination/pool/clear_pool_results.ts";
import { PoolItemTree } from "../../../src/coordination/pool/item_tree.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { backends, describeBackend, type RunningBackend } from "../../support/backends.ts";
import { eventually } from "../../support/eventually.ts";
import { LockCrew } from "../../support/lock_crew.ts";
import { pathIn, pool } from "../../support/pool_crew.ts";
import { failed, PoolWork } from "../../support/pool_work.ts";

setDefaultTimeout(30_000);

/** Lists that the test answers, one after the other. */
class Lists {
  count = 0;
  readonly #asked: { answer(items: string[]): void }[] = [];

  readonly list = (): Promise<string[]> => {
    this.count++;
    const { promise, resolve } = Promise.withResolvers<string[]>();
    this.#asked.push({ answer: resolve });
    return promise;
  };

  async answer(items: string[]): Promise<void> {
    (await eventually(() => this.#asked.shift(), { what: "a list to be asked for" })).answer(items);
  }

  async asked(): Promise<void> {
    await eventually(() => this.#asked.length > 0);
  }
}

async function recordsIn(crew: LockCrew, zk: ZooKeeper): Promise<string[]> {
  const tree = new PoolItemTree(zk, pathIn(crew).records);
  const lists = await Promise.all((await tree.listUsedShards() ?? []).map((shard) => tree.listItems(shard)));
  return lists.flat().sort();
}

for (const kind of backends) {
  describeBackend(kind, () => {
    let backend: RunningBackend;
    beforeAll(async () => void (backend = await kind.start()), 60_000);
    afterAll(() => backend.close());

    for (const isLoop of [false, true]) {
      test(`an item that ends while a list is read is not run by that list (loop: ${isLoop})`, async () => {
        await using crew = new LockCrew(backend.servers);
        const [a, b] = await crew.clients(2);
        if (!a || !b) throw new Error("no clients");
        const work = new PoolWork();
        const lists = new Lists();
        const first = pool(crew, a, work, { items: ["1"], list: () => Promise.resolve(["1"]), listsAgain: true });
        await eventually(() => work.running.has("1"));
        const second = pool(crew, b, work, { items: [], list: lists.list, listsAgain: true, jobs: 2, loop: isLoop });
        await lists.asked();
        await work.end("1", failed);
        await first;
        await lists.answer(["1", "2"]);
        await eventually(() => work.running.has("2"));
        // Only a list that is asked for now can say whether the first is still to be run: it is.
        if (isLoop) await work.end("2");
        await lists.answer(["1", "2"]);
        await work.end("1");
        if (isLoop) await lists.answer([]);
        else await work.end("2");
        expect(await second).toMatchObject({ claimed: 2, done: 2 });
        expect(work.began).toEqual(["1", "2", "1"]);
        expect(await recordsIn(crew, a)).toEqual([]);
      });
    }

    test("what the newer list names no more is not run again", async () => {
      await using crew = new LockCrew(backend.servers);
      const [a, b] = await crew.clients(2);
      if (!a || !b) throw new Error("no clients");
      const work = new PoolWork();
      const lists = new Lists();
      const first = pool(crew, a, work, { items: ["1"] }); // a fixed list, as of an operator
      await eventually(() => work.running.has("1"));
      const second = pool(crew, b, work, { items: [], list: lists.list, listsAgain: true, loop: true });
      await lists.asked();
      await work.end("1");
      await first;
      await lists.answer(["1"]);
      await lists.answer([]);
      expect(await second).toEqual({ claimed: 0, done: 0, failed: 0, busy: 0, skipped: 0, remaining: 0 });
      expect(work.began).toEqual(["1"]);
      const third = pool(crew, a, work, { items: ["1"] });
      await work.end("1");
      expect(await third).toMatchObject({ done: 1 });
      expect(await recordsIn(crew, a)).toEqual([]);
    });

    test("of a run whose session ended nobody knows when its item ended, and a newer list decides", async () => {
      await using crew = new LockCrew(backend.servers);
      const [a, b, c] = await crew.clients(3);
      if (!a || !b || !c) throw new Error("no clients");
      const [lost, work] = [new PoolWork(), new PoolWork()];
      const lists = new Lists();
      const first = pool(crew, a, lost, { items: ["1"], list: () => Promise.resolve(["1"]), listsAgain: true });
      await eventually(() => lost.running.has("1"));
      const second = pool(crew, b, work, { items: [], list: lists.list, listsAgain: true, loop: true });
      await lists.asked();
      await a.close();
      await lost.end("1");
      await first.catch(() => {});
      expect(await recordsIn(crew, b)).toEqual(["1"]);
      await lists.answer(["1"]);
      await lists.asked();
      expect(work.began).toEqual([]);
      await lists.answer(["1"]);
      await work.end("1");
      await lists.answer([]);
      expect(await second).toMatchObject({ claimed: 1, done: 1 });
      expect(await recordsIn(crew, b)).toEqual([]);
    });

    test("an item that a job takes off many lists of many runs runs once, and nothing is left behind", async () => {
      await using crew = new LockCrew(backend.servers);
      const clients = await crew.clients(4);
      const ready = new Set(Array.from({ length: 60 }, (_, index) => `item ${index}`));
      const ran: string[] = [];
      const done = { result: "done", what: "", mayRetry: false, stopsPool: false, keepsLock: false } as const;
      const list = async () => {
        const named = [...ready];
        await new Promise(setImmediate); // others end meanwhile
        return named;
      };
      const run = ({ item }: { item: string }) => {
        ran.push(item);
        ready.delete(item);
        return Promise.resolve(done);
      };
      const work = new PoolWork();
      const wait = { whileChoosingMs: 20_000 };
      await Promise.all(
        clients.map((zk) =>
          pool(crew, zk, work, { items: [], list, run, listsAgain: true, loop: true, jobs: 2, wait })
        ),
      );
      expect(ran.length).toBe(60);
      expect(new Set(ran).size).toBe(60);
      const [zk] = clients;
      if (zk === undefined) throw new Error("no client");
      await clearPoolResults(zk, { path: pathIn(crew), named: null, clock: systemClock() });
      expect(await zk.exists(pathIn(crew).own)).toBeNull();
    });
  });
}

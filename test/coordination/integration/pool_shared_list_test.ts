/** Runs of a pool with lists that do not change, at the same time, on real servers: they share one list. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { clearPoolResults } from "../../../src/coordination/pool/clear_pool_results.ts";
import type { PoolJob } from "../../../src/coordination/pool/pool_run_options.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { backends, describeBackend, type RunningBackend } from "../../support/backends.ts";
import { eventually } from "../../support/eventually.ts";
import { LockCrew } from "../../support/lock_crew.ts";
import { pathIn, pool } from "../../support/pool_crew.ts";
import { done, failed, PoolWork } from "../../support/pool_work.ts";

setDefaultTimeout(30_000);

const choosing = { whileChoosingMs: 20_000 };

for (const kind of backends) {
  describeBackend(kind, () => {
    let backend: RunningBackend;
    beforeAll(async () => void (backend = await kind.start()), 60_000);
    afterAll(() => backend.close());

    test("runs with one list that begin together run each item once, and leave nothing behind", async () => {
      await using crew = new LockCrew(backend.servers);
      const clients = await crew.clients(4);
      const items = Array.from({ length: 100 }, (_, index) => `${index}`);
      const ran: string[] = [];
      const run = async ({ item }: PoolJob) => {
        ran.push(item);
        await new Promise(setImmediate);
        return done;
      };
      const options = { items, run, loop: true, jobs: 2, wait: choosing };
      const counts = await Promise.all(clients.map((zk) => pool(crew, zk, new PoolWork(), options)));
      expect(ran.map(Number).sort((one, other) => one - other)).toEqual(items.map(Number));
      for (const { done, busy, skipped } of counts) expect(done + busy + skipped).toBe(100);
      const [zk] = clients as [ZooKeeper];
      await clearPoolResults(zk, { path: pathIn(crew), named: null, clock: systemClock() });
      expect(await zk.exists(pathIn(crew).own)).toBeNull();
    });

    test("a run that comes late, also after the first has left, runs nothing that the others have done", async () => {
      await using crew = new LockCrew(backend.servers);
      const [a, b, c] = await crew.clients(3) as [ZooKeeper, ZooKeeper, ZooKeeper];
      const [early, late, last] = [new PoolWork(), new PoolWork(), new PoolWork()];
      const first = pool(crew, a, early, { items: ["1", "2"], loop: true });
      await early.end("1");
      await eventually(() => early.running.has("2"));
      const second = pool(crew, b, late, { items: ["1", "2", "3"], loop: true, wait: choosing });
      await eventually(() => late.running.has("3"));
      await early.end("2");
      expect(await first).toMatchObject({ done: 2, skipped: 0 });
      const third = pool(crew, c, last, { items: ["1", "2", "3", "4"], loop: true, wait: choosing });
      await eventually(() => last.running.has("4"));
      await late.end("3");
      expect(await second).toMatchObject({ done: 1, skipped: 2 });
      await last.end("4");
      expect(await third).toEqual({ claimed: 1, done: 1, failed: 0, busy: 0, skipped: 3, remaining: 0 });
      expect([late.began, last.began]).toEqual([["3"], ["4"]]);
    });

    test("when the last run has ended, the next one runs all items again", async () => {
      await using crew = new LockCrew(backend.servers);
      const zk = await crew.client();
      const work = new PoolWork();
      for (let round = 0; round < 3; round++) {
        const running = pool(crew, zk, work, { items: ["1", "2"], loop: true });
        await work.end("1");
        await work.end("2");
        expect(await running).toMatchObject({ done: 2, skipped: 0 });
      }
      expect(work.began).toEqual(["1", "2", "1", "2", "1", "2"]);
    });

    test("an item that failed in one run is run by another one", async () => {
      await using crew = new LockCrew(backend.servers);
      const [a, b] = await crew.clients(2) as [ZooKeeper, ZooKeeper];
      const [one, other] = [new PoolWork(), new PoolWork()];
      const first = pool(crew, a, one, { items: ["1", "2"], jobs: 2, loop: true });
      await one.end("1", failed);
      const second = pool(crew, b, other, { items: ["1", "2"], loop: true, wait: choosing });
      await other.end("1");
      await one.end("2");
      expect([await first, await second]).toMatchObject([{ done: 1, failed: 1 }, { done: 1 }]);
    });

    test("of a run whose session ended, others run what it was running, and not what it had done", async () => {
      await using crew = new LockCrew(backend.servers);
      const [a, b] = await crew.clients(2) as [ZooKeeper, ZooKeeper];
      const [lost, work] = [new PoolWork(), new PoolWork()];
      const first = pool(crew, a, lost, { items: ["1", "2"], loop: true, jobs: 2 });
      await lost.end("1");
      await eventually(() => lost.running.has("2"));
      const second = pool(crew, b, work, { items: ["1", "2", "3"], loop: true, wait: choosing });
      await eventually(() => work.running.has("3"));
      await a.close();
      await lost.end("2");
      await first.catch(() => {});
      await work.end("3");
      await work.end("2");
      expect(await second).toMatchObject({ done: 2, skipped: 1, busy: 0 });
      expect(work.began).toEqual(["3", "2"]);
    });

    test("a query decides itself what it lists, and does not take part", async () => {
      await using crew = new LockCrew(backend.servers);
      const [a, b] = await crew.clients(2) as [ZooKeeper, ZooKeeper];
      const [fixed, asked] = [new PoolWork(), new PoolWork()];
      const first = pool(crew, a, fixed, { items: ["1", "2"], loop: true });
      await fixed.end("1");
      await eventually(() => fixed.running.has("2"));
      const list = () => Promise.resolve(["1"]);
      const second = pool(crew, b, asked, { items: [], list, listsAgain: true, wait: choosing });
      await asked.end("1");
      expect(await second).toMatchObject({ done: 1 });
      await fixed.end("2");
      expect(await first).toMatchObject({ done: 2 });
    });

    test("pool clear lets an item run again that a run of the list has done", async () => {
      await using crew = new LockCrew(backend.servers);
      const [a, b] = await crew.clients(2) as [ZooKeeper, ZooKeeper];
      const [one, other] = [new PoolWork(), new PoolWork()];
      const first = pool(crew, a, one, { items: ["1", "2"], loop: true });
      await one.end("1");
      await eventually(() => one.running.has("2"));
      await clearPoolResults(b, { path: pathIn(crew), named: ["1"], clock: systemClock() });
      const second = pool(crew, b, other, { items: ["1"], loop: true, wait: choosing });
      await other.end("1");
      await one.end("2");
      expect([await first, await second]).toMatchObject([{ done: 2 }, { done: 1 }]);
    });
  });
}

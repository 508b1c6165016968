/** A pool's --total on real servers. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { backends, describeBackend, type RunningBackend } from "../../support/backends.ts";
import { eventually } from "../../support/eventually.ts";
import { failureCode } from "../../support/failure_code.ts";
import { LockCrew } from "../../support/lock_crew.ts";
import { pathIn, pool } from "../../support/pool_crew.ts";
import { PoolWork } from "../../support/pool_work.ts";

setDefaultTimeout(30_000);

/** A pool with `total: 1`, of which one item runs at `a`. */
async function oneOfOne(crew: LockCrew) {
  const [a, b] = await crew.clients(2);
  if (!a || !b) throw new Error("no clients");
  const work = new PoolWork();
  const first = pool(crew, a, work, { items: ["1"], total: 1 });
  await eventually(() => work.running.size === 1);
  return { a, b, work, first };
}

for (const kind of backends) {
  describeBackend(kind, () => {
    let backend: RunningBackend;
    beforeAll(async () => void (backend = await kind.start()), 60_000);
    afterAll(() => backend.close());

    test("--total bounds what runs in all runs together, and another number is refused", async () => {
      await using crew = new LockCrew(backend.servers);
      const [a, b, c] = await crew.clients(3);
      if (!a || !b || !c) throw new Error("no clients");
      const work = new PoolWork();
      const items = ["1", "2", "3", "4", "5"];
      const first = pool(crew, a, work, { items, jobs: 2, total: 3 });
      await eventually(() => work.running.size === 2);
      const second = pool(crew, b, work, { items, jobs: 2, total: 3 });
      await eventually(() => work.running.size === 3);
      expect(await pool(crew, c, work, { items, jobs: 2, total: 3 })).toMatchObject({ claimed: 0, remaining: 5 });
      expect(await failureCode(pool(crew, c, work, { items, total: 4 }))).toBe("LIMIT_MISMATCH");
      await work.endAll();
      expect([(await first).done, (await second).done]).toEqual([2, 1]);
      const third = pool(crew, c, work, { items, jobs: 9, total: 3, loop: true });
      for (let rounds = 0; rounds < 5; rounds++) {
        await eventually(() => work.running.size > 0);
        expect(work.running.size).toBeLessThanOrEqual(3);
        await work.end([...work.running.keys()][0] ?? "");
      }
      expect((await third).done).toBe(5);
    });

    test("if a run's announcement was deleted, its permits still count, and another total is refused", async () => {
      await using crew = new LockCrew(backend.servers);
      const { a, b, work, first } = await oneOfOne(crew);
      const { runs } = pathIn(crew);
      for (const name of (await a.getChildren(runs)).children) await a.delete(`${runs}/${name}`, -1);
      expect(await failureCode(pool(crew, b, work, { items: ["2"], total: 2 }))).toBe("LIMIT_MISMATCH");
      expect(work.began).toEqual(["1"]);
      await work.endAll();
      expect((await first).done).toBe(1);
    });

    test("a run that loops waits for a permit as long as items are left, or tells how many are", async () => {
      await using crew = new LockCrew(backend.servers);
      const { b, work, first } = await oneOfOne(crew);
      const options = { items: ["2", "3"], jobs: 2, total: 1, loop: true };
      expect(await pool(crew, b, work, { ...options, wait: "none" })).toMatchObject({ claimed: 0, remaining: 2 });
      expect(await pool(crew, b, work, { ...options, wait: 1000 })).toMatchObject({ claimed: 0, remaining: 2 });
      const { total, component } = pathIn(crew);
      // A run that only asks whether a permit is free stands in the queue for a moment, and holds the component
      // meanwhile.
      const isWaiting = async (count: number) =>
        await eventually(async () => {
          const choosing = (await b.getChildren(component.holders)).children;
          return choosing.length === 0 && (await b.getChildren(total.queue)).children.length === count;
        });
      await isWaiting(0);
      const stop = new AbortController();
      const stopped = pool(crew, b, work, { ...options, wait: { whileChoosingMs: 10_000 }, stop: stop.signal });
      await isWaiting(1);
      stop.abort(new Error("stop"));
      // A run that is stopped before it has joined its list rejects with the reason.
      const claimedAtStop = await stopped.then(
        ({ claimed }) => claimed,
        (thrown) => thrown === stop.signal.reason ? 0 : -1,
      );
      expect(claimedAtStop).toBe(0);
      await isWaiting(0);
      const waiting = pool(crew, b, work, { ...options, wait: { whileChoosingMs: 10_000 } });
      await isWaiting(1);
      expect(work.began).toEqual(["1"]);
      await work.end("1");
      await first;
      // A run begins its items at a random one.
      for (let ended = 0; ended < 2; ended++) {
        await work.end(await eventually(() => [...work.running.keys()][0], { what: "an item to run" }));
      }
      expect(await waiting).toMatchObject({ done: 2, remaining: 0 });
      expect(work.most).toBe(1);
    });

    test("when nothing of the pool runs, --total may be another", async () => {
      await using crew = new LockCrew(backend.servers);
      const { a, b, work, first } = await oneOfOne(crew);
      expect(await failureCode(pool(crew, b, work, { items: ["2", "3"], total: 2 }))).toBe("LIMIT_MISMATCH");
      await work.endAll();
      await first;
      const second = pool(crew, b, work, { items: ["2", "3"], jobs: 2, total: 2 });
      await eventually(() => work.running.size === 2);
      expect(await failureCode(pool(crew, a, work, { items: ["1"], total: 1 }))).toBe("LIMIT_MISMATCH");
      await work.endAll();
      expect((await second).done).toBe(2);
    });
  });
}

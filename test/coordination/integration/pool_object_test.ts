/** The library's pool as an object. */
import { beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { parseServers, Pool, type PoolOptions } from "../../../src/library/baton.ts";
import { newGuid } from "../../../src/base/support/guid.ts";
import { backends, describeBackend } from "../../support/backends.ts";
import { eventually } from "../../support/eventually.ts";
import { failureCode } from "../../support/failure_code.ts";
import { observedBackend } from "../../support/observed_backend.ts";

setDefaultTimeout(20_000);

for (const kind of backends) {
  describeBackend(kind, () => {
    const rig = observedBackend(kind);
    let root: string;
    beforeEach(() => void (root = `/pools-${newGuid().slice(0, 12)}`));
    const place = () => ({ servers: parseServers(rig.backend.servers) });
    const poolOf = (options: PoolOptions = {}) => new Pool(place(), "c", { root, wait: 10_000, ...options });

    test("each item is worked on once, by one of several, under a lock of its own", async () => {
      await using one = poolOf({ jobs: 3, loop: true, doneTtlMs: 60_000 });
      await using other = new Pool(rig.observer, "c", { root, wait: 10_000, loop: true, doneTtlMs: 60_000 });
      const items = Array.from({ length: 20 }, (_, index) => `item ${index}`);
      const worked: string[] = [];
      const tokens = new Set<bigint>();
      const run = (pool: Pool) =>
        pool.run(items, async (item, { lease, fencingToken }) => {
          expect([lease.isHeld(), lease.name]).toEqual([true, `c/${item}`]);
          worked.push(item);
          tokens.add(fencingToken);
          await rig.observer.exists(root);
        });
      const counts = await Promise.all([run(one), run(other)]);
      expect([worked.length, new Set(worked).size, tokens.size]).toEqual([20, 20, 20]);
      expect(counts.reduce((sum, { done }) => sum + done, 0)).toBe(20);
      const { items: rows } = await one.status();
      expect(rows.map(({ state }) => state)).toEqual(items.map(() => "done"));
      expect(await other.clear(["item 3"])).toBe(1);
      expect(await run(one)).toMatchObject({ claimed: 1, done: 1 });
    });

    test("a list is worked on as a whole, a function's list round by round; `loop` decides otherwise", async () => {
      const workedBy = async (loop: boolean | undefined, items: Parameters<Pool["run"]>[0]) => {
        await using pool = poolOf(loop === undefined ? {} : { loop });
        const worked: string[] = [];
        await pool.run(items, (item) => void worked.push(item));
        return worked;
      };
      const items = ["a", "b", "c"];
      expect(await workedBy(undefined, items)).toEqual(items);
      expect(await workedBy(undefined, () => items)).toEqual(["a"]);
      expect(await workedBy(true, () => items)).toEqual(items);
      expect(await workedBy(false, items)).toEqual(["a"]);
    });

    test("work that rejects has failed, is tried again as often as was said, and told each time", async () => {
      const told: string[] = [];
      await using pool = poolOf({
        retries: 2,
        jobs: 2,
        doneTtlMs: 60_000,
        onFailed: (item, thrown) => told.push(`${item}: ${thrown instanceof Error ? thrown.message : thrown}`),
      });
      const counts = await pool.run(["bad", "good"], (item, { attempt }) => {
        if (item === "bad") throw new Error(`attempt ${attempt}`);
      });
      expect(counts).toMatchObject({ claimed: 2, done: 1, failed: 1 });
      expect(told).toEqual(["bad: attempt 1", "bad: attempt 2", "bad: attempt 3"]);
      expect(
        (await pool.status(["bad", "good", "new"])).items.map(({ state, lastResult }) => [state, lastResult?.what]),
      ).toEqual(
        [
          ["failed", "failed: attempt 3"],
          ["done", "done"],
          ["free", undefined],
        ],
      );
    });

    test("a list that is asked for is asked again, under the component's lock; what cannot be an item begins nothing", async () => {
      await using pool = poolOf({ loop: true });
      const lists = [["a"], ["a", "b"], []];
      const held: boolean[] = [];
      const worked: string[] = [];
      await pool.run((component) => {
        held.push(component.isHeld() && component.name === "c");
        return lists.shift() ?? [];
      }, (item) => void worked.push(item));
      expect([worked, new Set(held)]).toEqual([["a", "b"], new Set([true])]);
      expect(await failureCode(pool.run(["fine", ""], (item) => void worked.push(item)))).toBe("BAD_DATA");
      expect(worked).toEqual(["a", "b"]);
      expect(() => new Pool(place(), "")).toThrow(/cannot be the name of a component/);
    });

    test("a component that is busy, a signal, and the object's end have their own names; what runs is waited for", async () => {
      await using pool = poolOf({ wait: "none", loop: true });
      const listing = Promise.withResolvers<string[]>();
      const asked = Promise.withResolvers<void>();
      const first = pool.run(() => (asked.resolve(), listing.promise), () => {});
      await asked.promise;
      expect(await failureCode(pool.run(["a"], () => {}))).toBe("LOCK_BUSY");
      listing.resolve([]);
      expect(await first).toMatchObject({ claimed: 0 });
      expect(
        await failureCode(pool.run(["a"], () => {}, { signal: AbortSignal.abort(new DOMException("", "AbortError")) })),
      )
        .toBe("AbortError");

      const leaving = poolOf({ loop: true });
      const work = Promise.withResolvers<void>();
      let isRunning = false;
      const running = leaving.run(["a", "b"], () => (isRunning = true, work.promise));
      await eventually(() => isRunning);
      let isClosed = false;
      const closing = leaving.close().then(() => isClosed = true);
      await rig.observer.exists(root);
      expect(isClosed).toBe(false);
      work.resolve();
      expect(await running).toMatchObject({ claimed: 1, done: 1 });
      await closing;
      expect(await failureCode(leaving.run(["b"], () => {}))).toBe("AbortError");
      expect(await failureCode(leaving.status())).toBe("AbortError");
    });
  });
}

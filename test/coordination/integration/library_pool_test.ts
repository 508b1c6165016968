/** The library's pools. */
import { beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { openSession, type PoolItems, type PoolOptions, type PoolWork, runPool } from "../../../src/library/baton.ts";
import { poolPath } from "../../../src/coordination/pool/pool_path.ts";
import { readPoolStatus } from "../../../src/coordination/pool/read_pool_status.ts";
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
    const run = (items: PoolItems, work: PoolWork, options: PoolOptions = {}) => {
      const servers = options.session === undefined ? { servers: rig.backend.servers, root } : {};
      return runPool("c", items, work, { ...servers, wait: 10_000, ...options });
    };
    const statesOf = async (named: readonly string[]) => {
      const { items } = await readPoolStatus(rig.observer, "c", { path: poolPath("c", { root }), named });
      return items.map(({ state, lastResult }) => [state, lastResult?.what]);
    };

    test("each item is worked on once, by one of several, under a lock of its own", async () => {
      await using session = openSession({ servers: rig.backend.servers, root });
      const items = Array.from({ length: 20 }, (_, index) => `item ${index}`);
      const worked: string[] = [];
      const tokens = new Set<bigint>();
      const work: PoolWork = async (item, held) => {
        expect([held.isHeld(), held.name, held.signal.aborted]).toEqual([true, `c/${item}`, false]);
        worked.push(item);
        tokens.add(held.token);
        await rig.observer.exists(root);
      };
      const counts = await Promise.all([
        run(items, work, { jobs: 3, doneTtlMs: 60_000 }),
        run(items, work, { session, doneTtlMs: 60_000 }),
      ]);
      expect([worked.length, new Set(worked).size, tokens.size]).toEqual([20, 20, 20]);
      expect(counts.reduce((sum, { done }) => sum + done, 0)).toBe(20);
      expect(await statesOf(items)).toEqual(items.map(() => ["done", "done"]));
    });

    test("a list is worked on as a whole, a function's list round by round; `loop` decides otherwise", async () => {
      const workedBy = async (loop: boolean | undefined, items: PoolItems) => {
        const worked: string[] = [];
        await run(items, (item) => void worked.push(item), { loop });
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
      const counts = await run(["bad", "good"], (item, { attempt }) => {
        if (item === "bad") throw new TypeError(`attempt ${attempt}`);
      }, {
        retries: 2,
        jobs: 2,
        doneTtlMs: 60_000,
        onFailed: (item, thrown) => told.push(`${item}: ${thrown instanceof Error ? thrown.message : thrown}`),
      });
      expect(counts).toMatchObject({ claimed: 2, done: 1, failed: 1 });
      expect(told).toEqual(["bad: attempt 1", "bad: attempt 2", "bad: attempt 3"]);
      expect(await statesOf(["bad", "good", "new"])).toEqual([
        ["failed", "failed: attempt 3"],
        ["done", "done"],
        ["free", undefined],
      ]);
    });

    test("a list that is asked for is asked again, while others wait; an invalid item begins nothing", async () => {
      const lists = [["a"], ["a", "b"], []];
      const held: boolean[] = [];
      const worked: string[] = [];
      await run(
        (chooser) => {
          held.push(chooser.isHeld() && chooser.name === "c");
          return lists.shift() ?? [];
        },
        (item) => void worked.push(item),
        { loop: true },
      );
      expect([worked, new Set(held)]).toEqual([["a", "b"], new Set([true])]);
      expect(await failureCode(run(["fine", ""], (item) => void worked.push(item)))).toBe("BAD_DATA");
      expect(worked).toEqual(["a", "b"]);
    });

    test("a busy pool, a signal, and a closed session have their own names; what runs is waited for", async () => {
      const listing = Promise.withResolvers<string[]>();
      const asked = Promise.withResolvers<void>();
      const first = run(() => {
        asked.resolve();
        return listing.promise;
      }, () => {});
      await asked.promise;
      expect(await failureCode(run(["a"], () => {}, { wait: "none" }))).toBe("LOCK_BUSY");
      listing.resolve([]);
      expect(await first).toMatchObject({ claimed: 0 });
      const signal = AbortSignal.abort(new DOMException("", "AbortError"));
      expect(await failureCode(run(["a"], () => {}, { signal }))).toBe("AbortError");

      const session = openSession({ servers: rig.backend.servers, root });
      const work = Promise.withResolvers<void>();
      let isRunning = false;
      const running = run(["a", "b"], () => {
        isRunning = true;
        return work.promise;
      }, { session });
      await eventually(() => isRunning);
      let isClosed = false;
      const closing = session.close().then(() => isClosed = true);
      await rig.observer.exists(root);
      expect(isClosed).toBe(false);
      work.resolve();
      expect(await running).toMatchObject({ claimed: 1, done: 1 });
      await closing;
      expect(await failureCode(run(["b"], () => {}, { session }))).toBe("AbortError");
    });
  });
}

/** The pool on real servers, with jobs that end when the test says so. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { lockLimitStateCodec } from "../../../src/coordination/lock/lock_state.ts";
import { breakLock } from "../../../src/coordination/lock/break_lock.ts";
import { acquireLock } from "../../../src/coordination/lock/acquire_lock.ts";
import { clearPoolResults } from "../../../src/coordination/pool/clear_pool_results.ts";
import { ItemResultStore } from "../../../src/coordination/pool/item_result_store.ts";
import type { PoolJob } from "../../../src/coordination/pool/pool_run_options.ts";
import { readPoolStatus } from "../../../src/coordination/pool/read_pool_status.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { backends, describeBackend, type RunningBackend } from "../../support/backends.ts";
import { eventually } from "../../support/eventually.ts";
import { failureCode } from "../../support/failure_code.ts";
import { LockCrew } from "../../support/lock_crew.ts";
import { pathIn, pool } from "../../support/pool_crew.ts";
import { done, failed, PoolWork } from "../../support/pool_work.ts";

setDefaultTimeout(30_000);

for (const kind of backends) {
  describeBackend(kind, () => {
    let backend: RunningBackend;
    beforeAll(async () => void (backend = await kind.start()), 60_000);
    afterAll(() => backend.close());

    test("a run takes as many items as it may, skips those of others, and starts with the component free", async () => {
      await using crew = new LockCrew(backend.servers);
      const [a, b, other] = await crew.clients(3);
      if (!a || !b || !other) throw new Error("no clients");
      const held = await acquireLock(other, "c/2", { root: crew.root });
      const work = new PoolWork();
      const first = pool(crew, a, work, { items: ["1", "2", "3", "4"], jobs: 2 });
      await eventually(() => work.running.size === 2);
      expect(work.began).toEqual(["1", "3"]);
      const second = pool(crew, b, work, { items: ["1", "2", "3", "4"], jobs: 9 });
      await eventually(() => work.running.size === 3);
      expect(work.began).toEqual(["1", "3", "4"]);
      expect(new Set(work.tokens).size).toBe(3);
      await work.end("4");
      expect(await second).toEqual({ claimed: 1, done: 1, failed: 0, busy: 3, skipped: 0, remaining: 0 });
      await work.end("1");
      await work.end("3", failed);
      expect(await first).toEqual({ claimed: 2, done: 1, failed: 1, busy: 1, skipped: 0, remaining: 1 });
      await held.release();
    });

    test("while one lists, another is told that the component is busy, or waits for it", async () => {
      await using crew = new LockCrew(backend.servers);
      const [a, b] = await crew.clients(2);
      if (!a || !b) throw new Error("no clients");
      const listing = Promise.withResolvers<string[]>();
      const work = new PoolWork();
      let isListing = false;
      const first = pool(crew, a, work, { items: [], list: () => (isListing = true, listing.promise) });
      await eventually(() => isListing);
      expect(await failureCode(pool(crew, b, work, { items: ["x"] }))).toBe("LOCK_BUSY");
      expect(await failureCode(pool(crew, b, work, { items: ["x"], wait: 50 }))).toBe("LOCK_TIMEOUT");
      const second = pool(crew, b, work, { items: ["x"], wait: 10_000 });
      listing.resolve(["y"]);
      await eventually(() => work.running.size === 2);
      await work.endAll();
      expect([(await first).done, (await second).done]).toEqual([1, 1]);
    });

    test("--loop goes on while there are items, and lists again when there are none", async () => {
      await using crew = new LockCrew(backend.servers);
      const zk = await crew.client();
      const work = new PoolWork();
      const lists = [["1", "2", "3"], ["3", "4"], ["4"]];
      const list = () => Promise.resolve(lists.shift() ?? []);
      const running = pool(crew, zk, work, { items: [], list, listsAgain: true, loop: true, jobs: 2 });
      for (const item of ["1", "2", "3", "4"]) await work.end(item);
      expect(await running).toMatchObject({ claimed: 4, done: 4 });
      expect(work.began).toEqual(["1", "2", "3", "4"]);
      expect(work.most).toBe(2);
      expect(lists).toEqual([]);
    });

    test("an item that succeeded is not run again for its time; one that failed is run again", async () => {
      await using crew = new LockCrew(backend.servers);
      const zk = await crew.client();
      const work = new PoolWork();
      const options = { items: ["good", "bad"], jobs: 2, rememberMs: 60_000 };
      const first = pool(crew, zk, work, options);
      await work.end("good");
      await work.end("bad", failed);
      expect(await first).toMatchObject({ done: 1, failed: 1 });
      const second = pool(crew, zk, work, options);
      await work.end("bad");
      expect(await second).toEqual({ claimed: 1, done: 1, failed: 0, busy: 0, skipped: 1, remaining: 0 });
      const memory = new ItemResultStore(zk, pathIn(crew), []);
      const until = (await memory.findResult("good", 0))?.untilMs ?? 0;
      expect(until - Date.now()).toBeGreaterThan(50_000);
      expect(await memory.findResult("good", until)).toBeNull();
    });

    test("what is remembered past its time is deleted, and nothing else", async () => {
      await using crew = new LockCrew(backend.servers);
      const zk = await crew.client();
      const memory = new ItemResultStore(zk, pathIn(crew), [{ perms: 31, id: { scheme: "world", id: "anyone" } }]);
      const end = { result: "done", what: "", by: "", atMs: 1 } as const;
      for (let index = 0; index < 50; index++) {
        await memory.write(`${index}`, { ...end, untilMs: index < 25 ? 1000 : 2000 }, "/");
      }
      await memory.write("3", { ...end, untilMs: 2000 }, "/"); // its next end is written over the one before
      expect((await memory.readResults(0)).size).toBe(50);
      for (let turn = 0; turn < 16; turn++) await memory.clearExpired(turn, 1000);
      expect([...(await memory.readResults(0)).keys()].map(Number).sort((a, b) => a - b)).toEqual([
        3,
        ...Array.from({ length: 25 }, (_, index) => index + 25),
      ]);
    });

    test("what is forgotten may run again; nothing is left of a component that nobody uses", async () => {
      await using crew = new LockCrew(backend.servers);
      const zk = await crew.client();
      const path = pathIn(crew);
      const clock = systemClock();
      const states = async (named: string[]) =>
        (await readPoolStatus(zk, "c", { path, named })).items.map(({ state }) => state).join(" ");
      const work = new PoolWork();
      const options = { items: ["good", "bad", "other"], jobs: 3, total: 3, rememberMs: 60_000 };
      const running = pool(crew, zk, work, options);
      await work.end("good");
      await work.end("bad", failed);
      await work.end("other");
      await running;
      expect(await states(options.items)).toBe("done failed done");
      expect(await clearPoolResults(zk, { path, named: ["good", "never"], clock })).toBe(1);
      expect(await states(options.items)).toBe("free failed done");
      expect(await clearPoolResults(zk, { path, named: null, clock })).toBe(2);
      expect(await states(options.items)).toBe("free free free");
      expect(await zk.exists(path.own)).toBeNull();
      expect(await clearPoolResults(zk, { path, named: null, clock })).toBe(0);
      const again = pool(crew, zk, work, options);
      await eventually(() => work.running.size === 3);
      await work.endAll();
      expect(await again).toMatchObject({ claimed: 3, done: 3 });
    });

    test("what others end meanwhile is not run again, though it is still on the list", async () => {
      await using crew = new LockCrew(backend.servers);
      const [a, b] = await crew.clients(2);
      if (!a || !b) throw new Error("no clients");
      const items = Array.from({ length: 40 }, (_, index) => `${index}`);
      const ran: string[] = [];
      const run = ({ item }: PoolJob) => {
        ran.push(item);
        return Promise.resolve(done);
      };
      const options = { items, run, loop: true, rememberMs: 60_000, wait: 10_000 };
      const ends = await Promise.all([pool(crew, a, new PoolWork(), options), pool(crew, b, new PoolWork(), options)]);
      expect(ends.map(({ claimed }) => claimed).reduce((sum, taken) => sum + taken)).toBe(40);
      expect(ran.map(Number).sort((one, other) => one - other)).toEqual(items.map(Number));
    });

    test("an end between what was seen before and the grant of the lock is seen under the lock", async () => {
      await using crew = new LockCrew(backend.servers);
      const [zk, other] = await crew.clients(2);
      if (!zk || !other) throw new Error("no clients");
      const memory = new ItemResultStore(other, pathIn(crew), [{ perms: 31, id: { scheme: "world", id: "anyone" } }]);
      const end = { result: "done", what: "", by: "", atMs: Date.now(), untilMs: Date.now() + 60_000 } as const;
      const late = new Proxy(zk, {
        get(client, key) {
          const value: unknown = Reflect.get(client, key, client);
          if (typeof value !== "function") return value;
          if (key !== "getChildren") return value.bind(client);
          return async (...words: Parameters<ZooKeeper["getChildren"]>) => {
            const seen = await client.getChildren(...words).catch((thrown: unknown) => thrown);
            await memory.write("1", end, "/");
            if (seen instanceof Error) throw seen;
            return seen;
          };
        },
      });
      const counts = await pool(crew, late, new PoolWork(), { items: ["1"], rememberMs: 60_000 });
      expect(counts).toMatchObject({ claimed: 0, skipped: 1 });
      await (await acquireLock(other, "c/1", { root: crew.root, wait: "none" })).release();
    });

    test("--loop goes through a fixed list once more for what was busy", async () => {
      await using crew = new LockCrew(backend.servers);
      const [zk, other] = await crew.clients(2);
      if (!zk || !other) throw new Error("no clients");
      const held = await acquireLock(other, "c/1", { root: crew.root });
      const work = new PoolWork();
      const running = pool(crew, zk, work, { items: ["1", "2"], loop: true });
      await eventually(() => work.running.has("2"));
      await held.release();
      await work.end("2");
      await work.end("1");
      expect(await running).toMatchObject({ claimed: 2, done: 2, busy: 0 });
    });

    test("an item that was locked ahead of a job that turns out long is given back for others", async () => {
      await using crew = new LockCrew(backend.servers);
      const [zk, other] = await crew.clients(2);
      if (!zk || !other) throw new Error("no clients");
      const work = new PoolWork();
      const running = pool(crew, zk, work, { items: ["1", "2", "3"], loop: true });
      await work.end("1");
      const isHeld = async () => {
        const { items } = await readPoolStatus(other, "c", { path: pathIn(crew), named: ["3"] });
        return items[0]?.state === "running";
      };
      await eventually(async () => work.running.has("2") && await isHeld());
      await eventually(async () => !await isHeld());
      expect([...work.running.keys()]).toEqual(["2"]);
      await work.end("2");
      await work.end("3");
      expect(await running).toMatchObject({ claimed: 3, done: 3 });
    });

    test("what was locked ahead is prepared while another runs, and dropped when it is given back", async () => {
      await using crew = new LockCrew(backend.servers);
      const zk = await crew.client();
      const work = new PoolWork();
      const told: string[] = [];
      const prepare = (job: PoolJob) => {
        told.push(`prepared ${job.item}`);
        return {
          run: () => (told.push(`run ${job.item}`), work.run(job)),
          drop: () => void told.push(`dropped ${job.item}`),
        };
      };
      const running = pool(crew, zk, work, { items: ["1", "2", "3"], loop: true, prepare });
      await work.end("1");
      await eventually(() => told.includes("prepared 3"));
      await work.end("2");
      await work.end("3");
      expect(await running).toMatchObject({ claimed: 3, done: 3 });
      expect(told).toEqual(["prepared 3", "run 3"]);

      told.length = 0;
      const longer = pool(crew, zk, work, { items: ["4", "5", "6"], loop: true, prepare });
      await work.end("4");
      await eventually(() => told.includes("dropped 6"));
      await work.end("5");
      await work.end("6");
      expect(await longer).toMatchObject({ claimed: 3, done: 3 });
      expect(told.slice(0, 2)).toEqual(["prepared 6", "dropped 6"]);
    });

    test("a failed item is run again up to --retries times, under the same lock", async () => {
      await using crew = new LockCrew(backend.servers);
      const zk = await crew.client();
      const attempts: [string, number, bigint][] = [];
      const run = ({ item, attempt, itemLease }: PoolJob) => {
        attempts.push([item, attempt, itemLease.fencingToken]);
        return Promise.resolve(item === "a" && attempt === 3 ? done : failed);
      };
      const counts = await pool(crew, zk, new PoolWork(), { items: ["a", "b"], jobs: 2, retries: 2, run });
      expect(counts).toMatchObject({ claimed: 2, done: 1, failed: 1 });
      expect(attempts.map(([item, attempt]) => `${item}${attempt}`).sort()).toEqual([
        "a1",
        "a2",
        "a3",
        "b1",
        "b2",
        "b3",
      ]);
      expect(new Set(attempts.map(([, , token]) => token)).size).toBe(2);
    });

    test("a stop takes nothing new and lets what runs end", async () => {
      await using crew = new LockCrew(backend.servers);
      const zk = await crew.client();
      const work = new PoolWork();
      const stop = new AbortController();
      const running = pool(crew, zk, work, { items: ["1", "2", "3"], loop: true, stop: stop.signal });
      await work.end("1");
      await eventually(() => work.running.has("2"));
      stop.abort(new Error("stop"));
      await work.end("2");
      expect(await running).toMatchObject({ claimed: 2, done: 2 });
      const status = await readPoolStatus(zk, "c", { path: pathIn(crew), named: ["1", "2", "3"] });
      expect(status.items.map(({ state }) => state)).toEqual(["free", "free", "free"]);
    });

    test("a stop while the items are listed runs nothing and gives everything back", async () => {
      await using crew = new LockCrew(backend.servers);
      const zk = await crew.client();
      const work = new PoolWork();
      const stop = new AbortController();
      const list = () => {
        stop.abort(new Error("stopped"));
        return Promise.resolve(["1"]);
      };
      expect(await failureCode(pool(crew, zk, work, { items: [], list, stop: stop.signal }))).toBe("Error: stopped");
      expect(work.began).toEqual([]);
      await (await acquireLock(zk, "c", { root: crew.root, wait: "none" })).release();
      await (await acquireLock(zk, "c/1", { root: crew.root, wait: "none" })).release();
    });

    test("a list that cannot be had fails the run, after what runs has ended", async () => {
      await using crew = new LockCrew(backend.servers);
      const zk = await crew.client();
      const work = new PoolWork();
      let lists = 0;
      const list = () => lists++ === 0 ? Promise.resolve(["1", "2"]) : Promise.reject(new Error("no list"));
      const running = failureCode(pool(crew, zk, work, { items: [], list, listsAgain: true, loop: true, jobs: 2 }));
      for (const item of ["1", "2"]) await work.end(item);
      expect(await running).toBe("Error: no list");
    });

    test("an item whose lock is asked back loses that lock, and the others go on", async () => {
      await using crew = new LockCrew(backend.servers);
      const [zk, operator] = await crew.clients(2);
      if (!zk || !operator) throw new Error("no clients");
      const work = new PoolWork();
      let isLost = false;
      const run = async (job: PoolJob) => {
        job.lease.lost.addEventListener("abort", () => {
          isLost = true;
          void work.end(job.item, failed);
        });
        return await work.run(job);
      };
      const running = pool(crew, zk, work, { items: ["1", "2"], jobs: 2, run });
      await eventually(() => work.running.size === 2);
      const status = await readPoolStatus(operator, "c", { path: pathIn(crew), named: null });
      expect(status.items.map(({ item, state }) => `${item} ${state}`)).toEqual(["1 running", "2 running"]);
      const holder = status.items[0]?.holder?.holderId ?? "";
      await breakLock(operator, "c/1", holder, { root: crew.root });
      await eventually(() => isLost && work.running.size === 1);
      await work.end("2");
      expect(await running).toMatchObject({ claimed: 2, done: 1, failed: 1 });
    });

    test("an item whose lock is there in part, as the server leaves it while it reaps, is taken", async () => {
      await using crew = new LockCrew(backend.servers);
      const [a, b] = await crew.clients(2);
      if (!a || !b) throw new Error("no clients");
      const held = await acquireLock(b, "c/other", { root: crew.root }); // what is above is there
      const { item } = pathIn(crew);
      await b.create(item("1").lock, lockLimitStateCodec.initial(null));
      await b.create(item("2").lock, lockLimitStateCodec.initial(null));
      await b.create(item("2").queue, new Uint8Array());
      for (const rememberMs of [null, 60_000]) {
        const work = new PoolWork();
        const running = pool(crew, a, work, { items: ["1", "2", "3"], jobs: 3, rememberMs });
        for (const name of ["1", "2", "3"]) await work.end(name);
        expect(await running).toMatchObject({ claimed: 3, done: 3 });
      }
      await held.release();
    });

    test("an item at whose place something else is ends the run with what is there", async () => {
      await using crew = new LockCrew(backend.servers);
      const zk = await crew.client();
      const held = await acquireLock(zk, "c/other", { root: crew.root });
      await zk.create(pathIn(crew).item("1").lock, new TextEncoder().encode("somebody's"));
      expect(await failureCode(pool(crew, zk, new PoolWork(), { items: ["1"] }))).toBe("CONFIG");
      await held.release();
    });

    test("status says what is free, running, done and failed", async () => {
      await using crew = new LockCrew(backend.servers);
      const zk = await crew.client();
      const work = new PoolWork();
      const named = ["good", "bad", "on", "free"];
      const running = pool(crew, zk, work, { items: named.slice(0, 3), jobs: 3, rememberMs: 60_000 });
      await work.end("good");
      await work.end("bad", failed);
      const states = async (of: string[] | null) => {
        const { items } = await readPoolStatus(zk, "c", { path: pathIn(crew), named: of });
        return items.map(({ item, state }) => `${item} ${state}`);
      };
      await eventually(async () => (await states(named)).join() === "good done,bad failed,on running,free free");
      expect(await states(null)).toEqual(["bad failed", "good done", "on running"]);
      await work.end("on");
      await running;
    });
  });
}

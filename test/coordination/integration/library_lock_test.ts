/** The library's locks: a function that runs under one, and a lock that is held as a value. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import {
  acquireLock,
  BatonError,
  breakLock,
  listLocks,
  lock,
  type LockOptions,
  lockStatus,
  openSession,
} from "../../../src/library/baton.ts";
import { LibrarySession } from "../../../src/library/session.ts";
import { newGuid } from "../../../src/base/support/guid.ts";
import { backends, describeBackend } from "../../support/backends.ts";
import { ChaosProxy } from "../../support/chaos_proxy.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeClock } from "../../support/fake_clock.ts";
import { firstWaiterGranted } from "../../support/first_waiter_granted.ts";
import { failureCode } from "../../support/failure_code.ts";
import { observedBackend } from "../../support/observed_backend.ts";

setDefaultTimeout(20_000);

for (const kind of backends) {
  describeBackend(kind, () => {
    const rig = observedBackend(kind);
    let proxy: ChaosProxy;
    let root: string;
    beforeEach(async () => {
      const [node] = rig.backend.nodes;
      if (node === undefined) throw new Error("no server");
      proxy = await ChaosProxy.start(node.address);
      root = `/locks-${newGuid().slice(0, 12)}`;
    });
    afterEach(() => proxy.close());

    const direct = () => ({ servers: rig.backend.servers, root });
    const viaProxy = () => ({ servers: proxy.servers, root });
    const statusOf = (name: string) => lockStatus(name, direct());
    const deleteHolder = async (name: string) => {
      const path = `${root}/locks/${name}/h`;
      const { children: [holder] } = await rig.observer.getChildren(path);
      await rig.observer.delete(`${path}/${holder}`, -1);
    };

    test("four tasks use one connection, and hold the lock one at a time; the connection ends after them", async () => {
      const inside: number[] = [];
      let most = 0;
      const results = await Promise.all([1, 2, 3, 4].map((id) =>
        lock("resource", async (held) => {
          expect([held.name, held.isHeld(), held.signal.aborted, held.slot]).toEqual(["resource", true, false, null]);
          inside.push(id);
          most = Math.max(most, inside.length);
          await rig.observer.exists(root);
          inside.pop();
          return id;
        }, viaProxy())
      ));
      expect([results, most, proxy.counts.connections]).toEqual([[1, 2, 3, 4], 1, 1]);
      await eventually(() => proxy.connections === 0);
      await lock("resource", () => {}, viaProxy());
      expect(proxy.counts.connections).toBe(2);
    });

    test("what the work throws comes as it is, and the lock is free then", async () => {
      const broken = new TypeError("of the program");
      expect(await lock("work", () => Promise.reject(broken), direct()).catch((thrown: unknown) => thrown)).toBe(
        broken,
      );
      const thrown = await lock("work", (): void => (null as unknown as { f(): void }).f(), direct())
        .catch((error: unknown) => error);
      expect(thrown).toBeInstanceOf(TypeError);
      await using held = await acquireLock("work", { ...direct(), wait: "none" });
      const onWaiting = () => {
        throw broken;
      };
      const waiting = acquireLock("work", { ...direct(), onWaiting });
      expect(await waiting.catch((error: unknown) => error)).toBe(broken);
      expect(held.isHeld()).toBe(true);
      expect((await statusOf("work")).waiters).toEqual([]);
    });

    test("a lock that is lost during the work: its signal aborts, and the call rejects with the loss", async () => {
      const work = lock("lost", async ({ signal }) => {
        await deleteHolder("lost");
        await eventually(() => signal.aborted);
        expect(signal.reason).toMatchObject({ code: "LOCK_LOST" });
      }, direct());
      expect(await failureCode(work)).toBe("LOCK_LOST");
      await (await acquireLock("lost", { ...direct(), wait: "none" })).release();
    });

    test("work that does not end after the loss is reported, and is not waited for", async () => {
      const clock = new FakeClock();
      await using session = new LibrarySession(direct(), { clock });
      const lost = Promise.withResolvers<void>();
      const work = lock("endless", ({ signal }) => {
        signal.addEventListener("abort", () => lost.resolve());
        return Promise.withResolvers<void>().promise;
      }, { session }).catch((thrown: unknown) => thrown);
      await eventually(async () => (await statusOf("endless")).holders.length === 1);
      await clock.advance(50); // from then on the holder's node is watched
      await deleteHolder("endless");
      await lost.promise;
      await clock.advance(5000);
      const thrown = await work;
      expect(thrown).toBeInstanceOf(BatonError);
      expect(thrown).toMatchObject({ code: "LOCK_LOST" });
      expect(String(thrown)).toContain("has not ended within 5 s, and continues without the lock");
    });

    test("a holder that is asked to release the lock has it until its work has ended", async () => {
      const asked = Promise.withResolvers<void>();
      const mayEnd = Promise.withResolvers<void>();
      const work = lock("broken", async ({ signal, name }) => {
        signal.addEventListener("abort", () => asked.resolve());
        await mayEnd.promise;
        return [name, signal.reason.code, (signal.reason as Error).message];
      }, direct());
      await eventually(async () => (await statusOf("broken")).holders.length === 1);
      expect(await breakLock("broken", { ...direct(), reason: "a test" })).toMatchObject({ outcome: "asked" });
      await asked.promise;
      expect(await failureCode(acquireLock("broken", { ...direct(), wait: "none" }))).toBe("LOCK_BUSY");
      mayEnd.resolve();
      const [name, code, why] = await work;
      expect([name, code]).toEqual(["broken", "REVOKED"]);
      expect(why).toContain('reason "a test"');
      expect(await failureCode(breakLock("broken", direct()))).toBe("NOT_FOUND");
      expect((await listLocks(direct())).map(({ name }) => name)).toEqual(["broken"]);
    });

    test("with a recipe it stands in the line of another library's lock, by the path of its node", async () => {
      const path = `${root}/others`;
      const servers = { servers: proxy.servers, recipe: "kazoo" } as const;
      const first = await acquireLock(path, servers);
      const { children: [child = ""] } = await rig.observer.getChildren(path);
      expect(child).toMatch(/^[0-9a-f]{32}__lock__0000000000$/);
      expect((await rig.observer.exists(`${path}/${child}`))?.czxid).toBe(first.token);
      expect(await failureCode(acquireLock(path, { ...servers, wait: "none" }))).toBe("LOCK_BUSY");
      await first.release();
      await using second = await acquireLock(path, { ...servers, wait: "none" });
      expect(second.token).toBeGreaterThan(first.token);
      expect(await failureCode(acquireLock("others", servers))).toBe("USAGE");
    });

    test("the foreground passes the background, and the reason is there to be read", async () => {
      const first = await acquireLock("article-7", { ...direct(), reason: "Save Content" });
      const order: string[] = [];
      const start = (priority: "foreground" | "background", reason: string) =>
        lock("article-7", () => void order.push(priority), { ...direct(), priority, reason });
      const waiters = async () => (await statusOf("article-7")).waiters;
      const done = [start("background", "Bulk Propagation")];
      await eventually(async () => (await waiters()).length === 1);
      done.push(start("foreground", "Save Content"));
      await eventually(async () => (await waiters()).length === 2);
      expect((await waiters()).map(({ reason }) => reason)).toEqual(["Save Content", "Bulk Propagation"]);
      await firstWaiterGranted(rig.observer, "article-7", { root, waiters: 2 });
      await first.release();
      await Promise.all(done);
      expect(order).toEqual(["foreground", "background"]);
    });

    test("a busy lock and a time that is over have their own names", async () => {
      const clock = new FakeClock();
      await using holder = await acquireLock("busy", direct());
      await using session = new LibrarySession(direct(), { clock });
      // The time is over after a server has said that the lock is taken. Before that, no server would have responded.
      const isTaken = Promise.withResolvers<void>();
      const options: LockOptions = { session, wait: 100, onWaiting: () => isTaken.resolve() };
      const failure = failureCode(acquireLock("busy", options));
      await isTaken.promise;
      await clock.advance(100);
      expect(await failure).toBe("LOCK_TIMEOUT");
      expect(await failureCode(acquireLock("busy", { ...direct(), wait: "none" }))).toBe("LOCK_BUSY");
      await holder.release();
      await holder.release();
      await (await acquireLock("busy", { ...direct(), wait: "none" })).release();
    });

    test("a lock whose node was deleted is lost: its release says so, and the end of its scope does not", async () => {
      const held = await acquireLock("deleted", direct());
      await deleteHolder("deleted");
      await eventually(() => held.signal.aborted);
      expect(held.isHeld()).toBe(false);
      expect(await failureCode(held.release())).toBe("LOCK_LOST");
      {
        await using other = await acquireLock("deleted", direct());
        await deleteHolder("deleted");
        await eventually(() => other.signal.aborted);
      }
    });

    test("a silent server and an expired session have their own names, and the session is good for more", async () => {
      const holder = await acquireLock("lost", direct());
      await using session = openSession({ ...viaProxy(), sessionTimeoutMs: 2000 });
      const held = await acquireLock("held", { session });
      const waiting = failureCode(acquireLock("lost", { session }));
      await eventually(async () => (await statusOf("lost")).waiters.length === 1);
      proxy.blackHole();
      expect(await failureCode(acquireLock("lost", { session, wait: 1000 }))).toBe("UNREACHABLE");
      await eventually(async () => (await statusOf("lost")).waiters.length === 0);
      await eventually(async () => (await statusOf("held")).holders.length === 0);
      expect(held.isHeld()).toBe(false);
      proxy.heal();
      expect(await waiting).toBe("SESSION_EXPIRED");
      expect(await failureCode(held.release())).toBe("LOCK_LOST");
      await holder.release();
      expect((await acquireLock("lost", { session })).isHeld()).toBe(true);
    });

    test("a session that is closed gives back what it has, and ends every wait", async () => {
      const session = openSession(direct());
      const held = await acquireLock("gone", { session });
      const waiting = failureCode(acquireLock("gone", { session }));
      await eventually(async () => (await statusOf("gone")).waiters.length === 1);
      const wasHeld = Promise.withResolvers<boolean>();
      const working = lock("work", ({ signal, isHeld }) => {
        signal.addEventListener("abort", () => wasHeld.resolve(isHeld()));
        return wasHeld.promise;
      }, { session });
      await eventually(async () => (await statusOf("work")).holders.length === 1);
      await session.close();
      // The work is asked to stop, and is under the lock until its end.
      expect([await waiting, held.isHeld(), await working]).toEqual(["AbortError", false, true]);
      expect(await failureCode(acquireLock("gone", { session }))).toBe("AbortError");
      expect(await statusOf("gone")).toMatchObject({ holders: [], waiters: [] });
    });

    test("permits let so many in, each with a slot of its own; shared holders share", async () => {
      const gpu = { ...direct(), permits: 2 };
      const [first, second] = [await acquireLock("gpu", gpu), await acquireLock("gpu", gpu)];
      expect([first.slot, second.slot].sort()).toEqual([0, 1]);
      expect(await failureCode(acquireLock("gpu", { ...gpu, wait: "none" }))).toBe("LOCK_BUSY");
      await first.release();
      await using third = await acquireLock("gpu", gpu);
      expect(third.slot).toBe(first.slot);
      expect(await failureCode(breakLock("gpu", direct()))).toBe("USAGE");
      await second.release();
      const readers = [1, 2].map(() => acquireLock("readers", { ...direct(), shared: true }));
      for (const reader of await Promise.all(readers)) await reader.release();
    });
  });
}

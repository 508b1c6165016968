/**
 * The library's lock as an object, in the shapes that applications know: shared by tasks, with a type and an info text.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { connect, Lock, lockStatus, parseServers, Semaphore } from "../../../src/library/baton.ts";
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
      root = `/objects-${newGuid().slice(0, 12)}`;
    });
    afterEach(() => proxy.close());

    const place = (sessionTimeoutMs = 10_000) => ({ servers: parseServers(proxy.servers), sessionTimeoutMs });
    const waiters = async (name: string) => (await lockStatus(rig.observer, name, { root })).waiters;

    test("four tasks share one object and one connection, and hold it one at a time", async () => {
      const lock = new Lock(place(), "resource", { root });
      const inside: number[] = [];
      let most = 0;
      await Promise.all([1, 2, 3, 4].map(async (id) => {
        await lock.acquire();
        inside.push(id);
        most = Math.max(most, inside.length);
        await rig.observer.exists(root);
        inside.pop();
        await lock.release();
      }));
      expect([most, lock.isHeld, proxy.counts.connections]).toEqual([1, false, 1]);
      await lock.destroy();
      await eventually(() => proxy.connections === 0);
    });

    test("with a recipe it stands in the line of another library's lock, by the path of its node", async () => {
      const path = `${root}/others`;
      await using first = new Lock(place(), path, { recipe: "kazoo" });
      await using second = new Lock(place(), path, { recipe: "kazoo", wait: "none" });
      const lease = await first.acquire();
      const { children: [child = ""] } = await rig.observer.getChildren(path);
      expect(child).toMatch(/^[0-9a-f]{32}__lock__0000000000$/);
      expect((await rig.observer.exists(`${path}/${child}`))?.czxid).toBe(lease.fencingToken);
      expect(await failureCode(second.acquire())).toBe("LOCK_BUSY");
      await first.release();
      expect((await second.acquire()).fencingToken).toBeGreaterThan(lease.fencingToken);
      expect(() => new Lock(place(), "others", { recipe: "kazoo" })).toThrow("the path of the lock's node");
    });

    test("the foreground passes the background, and the info text is there to be read", async () => {
      await using first = new Lock(place(), "article-7", { root, reason: "Save Content" });
      await using bulk = new Lock(place(), "article-7", { root, reason: "Bulk Propagation", priority: "background" });
      await using save = new Lock(place(), "article-7", { root, reason: "Save Content" });
      await first.acquire();
      const order: string[] = [];
      const done = [bulk.use(() => order.push("background"))];
      await eventually(async () => (await waiters("article-7")).length === 1);
      done.push(save.use(() => order.push("foreground")));
      await eventually(async () => (await waiters("article-7")).length === 2);
      expect((await waiters("article-7")).map(({ reason }) => reason)).toEqual(["Save Content", "Bulk Propagation"]);
      await firstWaiterGranted(rig.observer, "article-7", { root, waiters: 2 });
      await first.release();
      await Promise.all(done);
      expect(order).toEqual(["foreground", "background"]);
    });

    test("not within the time, and not held, have their own names", async () => {
      const clock = new FakeClock();
      await using holder = new Lock(place(), "busy", { root });
      await using other = new Lock(place(), "busy", { root });
      await using late = new Lock(place(), "busy", { root, wait: 100, clock });
      await holder.acquire();
      // The time is over after a server has said that the lock is taken. Before that, it would be a lost connection.
      const isTaken = Promise.withResolvers<void>();
      const failure = failureCode(late.acquire({ onWaiting: () => isTaken.resolve() }));
      await isTaken.promise;
      await clock.advance(100);
      expect(await failure).toBe("LOCK_TIMEOUT");
      expect(await failureCode(other.acquire({ wait: "none" }))).toBe("LOCK_BUSY");
      expect(await failureCode(other.release())).toBe("NOT_HELD");
      await holder.release();
      expect(await failureCode(holder.release())).toBe("NOT_HELD");
      await other.acquire();
    });

    test("a node that somebody deleted is not held any more", async () => {
      await using lock = new Lock(place(), "deleted", { root });
      const lease = await lock.acquire();
      const [holder] = await rig.observer.getChildren(`${lease.path}/h`).then(({ children }) => children);
      await rig.observer.delete(`${lease.path}/h/${holder}`, -1);
      await eventually(() => lease.lost.aborted);
      expect(await failureCode(lock.release())).toBe("NOT_HELD");
      await (await lock.acquire()).release();
    });

    test("a lost connection and an expired session have their own names, and the object is good for more", async () => {
      await using holder = new Lock({ servers: parseServers(rig.backend.servers) }, "lost", { root });
      await using zk = await connect(place(2000));
      await using held = new Lock(zk, "held", { root });
      await using lock = new Lock(place(2000), "lost", { root });
      await holder.acquire();
      await held.acquire();
      const waiting = failureCode(lock.acquire());
      await eventually(async () => (await waiters("lost")).length === 1);
      proxy.blackHole();
      expect(await failureCode(lock.acquire({ wait: 1000 }))).toBe("CONNECTION_LOST");
      await eventually(async () => (await waiters("lost")).length === 0);
      await eventually(async () => (await lockStatus(rig.observer, "held", { root })).holders.length === 0);
      expect(held.isHeld).toBe(false);
      proxy.heal();
      expect(await waiting).toBe("SESSION_EXPIRED");
      await eventually(() => zk.session.ended.aborted);
      expect(await failureCode(held.release())).toBe("SESSION_EXPIRED");
      await holder.release();
      await lock.acquire();
      expect(lock.isHeld).toBe(true);
    });

    test("destroyed, it gives back what it has and ends every wait", async () => {
      const lock = new Lock(rig.observer, "gone", { root });
      await lock.acquire();
      const waiting = failureCode(lock.acquire());
      await eventually(async () => (await waiters("gone")).length === 1);
      await lock.destroy();
      expect(await waiting).toBe("AbortError");
      expect(await failureCode(lock.acquire())).toBe("AbortError");
      const { holders } = await lockStatus(rig.observer, "gone", { root });
      expect([holders, await waiters("gone"), rig.observer.session.ended.aborted]).toEqual([[], [], false]);
    });

    test("a semaphore lets so many in, each with a slot of its own", async () => {
      await using gpu = new Semaphore(place(), "gpu", 2, { root });
      const slots = new Set([(await gpu.acquire()).slot, (await gpu.acquire()).slot]);
      expect([...slots].sort()).toEqual([0, 1]);
      expect(await failureCode(gpu.acquire({ wait: "none" }))).toBe("LOCK_BUSY");
      await gpu.release();
      expect(slots.has((await gpu.acquire()).slot)).toBe(true);
    });
  });
}

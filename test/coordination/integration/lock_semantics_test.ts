import { afterAll, beforeAll, expect, test } from "bun:test";
import { breakLock } from "../../../src/coordination/lock/break_lock.ts";
import { lockPath } from "../../../src/coordination/nodes/node_paths.ts";
import { lockStatus } from "../../../src/coordination/lock/lock_status.ts";
import { backends, describeBackend, type RunningBackend } from "../../support/backends.ts";
import { eventually } from "../../support/eventually.ts";
import { firstWaiterGranted } from "../../support/first_waiter_granted.ts";
import { LockCrew } from "../../support/lock_crew.ts";

const ready = async () => {};
/** Lets others have a turn, by a round trip of one's own. */
const linger = (crew: LockCrew, zk: Awaited<ReturnType<LockCrew["client"]>>) => async () =>
  void await zk.exists(crew.root);

for (const kind of backends) {
  describeBackend(kind, () => {
    let backend: RunningBackend;
    beforeAll(async () => void (backend = await kind.start()), 40_000);
    afterAll(() => backend.close());

    test("20 contenders get an exclusive lock one at a time, each as often as it asks", async () => {
      await using crew = new LockCrew(backend.servers);
      const clients = await crew.clients(20);
      await Promise.all(clients.map(async (zk) => {
        for (let round = 0; round < 5; round++) await crew.hold(zk, "x", {}, linger(crew, zk));
      }));
      expect([crew.tokens.length, crew.holdersMax]).toEqual([100, 1]);
      crew.expectTokensToGrow();
    }, 15_000);

    test("permits are given out up to the limit, and used up to it, each slot to one holder at a time", async () => {
      await using crew = new LockCrew(backend.servers);
      const clients = await crew.clients(10);
      await Promise.all(clients.map(async (zk) => {
        for (let round = 0; round < 5; round++) {
          const full = async () => void (await eventually(() => crew.holdersMax === 3));
          await crew.hold(zk, "p", { mode: "permit", limit: 3 }, round === 0 ? full : linger(crew, zk));
        }
      }));
      expect([crew.tokens.length, crew.holdersMax]).toEqual([50, 3]);
      expect(new Set(crew.tokens).size).toBe(50);
      expect([...crew.slots].sort()).toEqual([0, 1, 2]);
    }, 15_000);

    test("readers hold together, a writer alone, and a waiting writer is not passed by later readers", async () => {
      await using crew = new LockCrew(backend.servers);
      const [a, b, w, late] = await crew.clients(4);
      if (!a || !b || !w || !late) throw new Error("no clients");
      const readers = [await crew.acquire(a, "s", { mode: "shared" }), await crew.acquire(b, "s", { mode: "shared" })];
      let isWriting = false;
      const writing = crew.acquire(w, "s").then((lease) => (isWriting = true, lease));
      await eventually(async () => (await lockStatus(a, "s", { root: crew.root })).waiters.length === 1);
      const reading = crew.acquire(late, "s", { mode: "shared" });
      await eventually(async () => (await lockStatus(a, "s", { root: crew.root })).waiters.length === 2);
      expect(isWriting).toBe(false);
      for (const lease of readers) await lease.release();
      const writer = await writing;
      expect((await lockStatus(a, "s", { root: crew.root })).holders).toHaveLength(1);
      await writer.release();
      await (await reading).release();
    }, 15_000);

    test("the lower priority number goes first, whenever it came", async () => {
      await using crew = new LockCrew(backend.servers);
      const clients = await crew.clients(5);
      const [first] = clients;
      if (first === undefined) throw new Error("no client");
      const held = await crew.acquire(first, "o");
      const order: number[] = [];
      const waiting: Promise<void>[] = [];
      for (const [index, priority] of [200, 300, 100, 5].entries()) {
        const zk = clients[index + 1] ?? first;
        waiting.push(crew.acquire(zk, "o", { priority }).then((lease) => (order.push(priority), lease.release())));
        await eventually(async () => (await lockStatus(first, "o", { root: crew.root })).waiters.length === index + 1);
      }
      await firstWaiterGranted(first, "o", { root: crew.root, waiters: 4 });
      await held.release();
      await Promise.all(waiting);
      expect(order).toEqual([5, 100, 200, 300]);
    }, 15_000);

    test("break asks the holder, who learns of it at once", async () => {
      await using crew = new LockCrew(backend.servers);
      const [holder, operator] = await crew.clients(2);
      if (!holder || !operator) throw new Error("no clients");
      const lease = await crew.acquire(holder, "b");
      lease.lost.addEventListener("abort", () => void lease.release());
      const revocation = { by: "ops", reason: "maintenance" };
      const broken = await breakLock(operator, "b", lease.holderId, { root: crew.root, waitMs: 5000, revocation });
      expect(broken.outcome).toBe("released");
      expect(lease.lost.reason).toMatchObject({ code: "REVOKED" });
      await (await crew.acquire(operator, "b", { wait: "none" })).release();
    }, 15_000);

    test("50 contenders survive that the path is deleted under them, again and again", async () => {
      await using crew = new LockCrew(backend.servers);
      const clients = await crew.clients(50);
      const vandal = await crew.client();
      const path = lockPath("d", crew.root);
      const done = new AbortController();
      const children = (at: string) => vandal.getChildren(at).then(({ children }) => children, () => []);
      let [sweeps, deletions] = [0, 0];
      const deleting = (async () => {
        while (!done.signal.aborted) {
          for (const folder of [path.queue, path.holders]) {
            const nodes = await children(folder);
            await Promise.all(
              [...nodes.map((name) => `${folder}/${name}`), folder].map((node) =>
                vandal.delete(node, -1).then(ready, ready)
              ),
            );
          }
          // Fails if somebody has made a node in it again meanwhile, which a slow machine sees nearly always.
          await vandal.delete(path.lock, -1).then(() => deletions++, ready);
          sweeps++;
          await (await crew.acquire(vandal, "d")).release(); // takes its turn, so that the others have theirs
        }
      })();
      // A holder whose node is deleted has lost the lock: what it cannot do is wait for ever.
      const rounds = clients.map(async (zk) => {
        for (let round = 0; round < 3 || sweeps < (deletions < 1 ? 20 : 5); round++) {
          await (await crew.acquire(zk, "d")).release();
        }
      });
      await Promise.all(rounds);
      done.abort();
      await deleting;
      console.log(`${kind.name}: all nodes were deleted ${sweeps} times, ${deletions} times with the path`);
      const status = await lockStatus(vandal, "d", { root: crew.root });
      expect([status.holders.length, status.waiters.length]).toEqual([0, 0]);
    }, 30_000);
  });
}

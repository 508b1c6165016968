/** Over a real connection: the loss of each request and each reply of acquire and release, one after the other. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { lockStatus } from "../../../src/coordination/lock/lock_status.ts";
import { backends, describeBackend, type RunningBackend, type ServerNode } from "../../support/backends.ts";
import { ChaosProxy, type Direction } from "../../support/chaos_proxy.ts";
import { eventually } from "../../support/eventually.ts";
import { LockCrew } from "../../support/lock_crew.ts";

/** Requests of an acquire behind a holder on a lock that does not exist yet, and of its release; with room to spare. */
const framesMax = 14;

for (const kind of backends) {
  describeBackend(kind, () => {
    let backend: RunningBackend;
    beforeAll(async () => void (backend = await kind.start()), 40_000);
    afterAll(() => backend.close());

    test("a lock below the root of a chroot that was never used", async () => {
      await using crew = new LockCrew(backend.servers);
      for (const mode of ["shared", "exclusive"] as const) {
        const zk = await crew.client({ servers: `${backend.servers}/never/used/by-${mode}` });
        const lease = await crew.acquire(zk, "first", { mode });
        expect(lease.isHeld()).toBe(true);
        await lease.release();
      }
    });

    for (const direction of ["requests", "replies"] satisfies Direction[]) {
      test(`any of the ${direction} may be lost: exactly one holder, no orphan, no deadlock`, async () => {
        await using crew = new LockCrew(backend.servers);
        const observer = await crew.client();
        const { address } = backend.nodes[0] as ServerNode;
        let happened = 0;
        await Promise.all(Array.from({ length: framesMax }, async (_, nth) => {
          const proxy = await ChaosProxy.start(address);
          try {
            const name = `${direction}-${nth}`;
            const zk = await crew.client({ servers: proxy.servers });
            const other = await crew.client();
            void proxy.onFrame({ direction, nth, action: "drop" }).then(() => happened++);
            const isFresh = nth % 2 === 0;
            const before = isFresh ? null : await crew.acquire(other, name);
            const acquiring = crew.acquire(zk, name);
            if (before !== null) {
              await eventually(async () =>
                (await lockStatus(observer, name, { root: crew.root })).waiters.length === 1
              );
              await before.release();
            }
            const lease = await acquiring;
            await expect(crew.acquire(other, name, { wait: "none" })).rejects.toMatchObject({ code: "LOCK_BUSY" });
            expect(lease.isHeld()).toBe(true);
            await lease.release();
            await (await crew.acquire(other, name, { wait: "none" })).release();
            const status = await lockStatus(observer, name, { root: crew.root });
            expect([status.holders.length, status.waiters.length]).toEqual([0, 0]);
            expect(zk.session.ended.aborted).toBe(false);
            await zk.close();
          } finally {
            await proxy.close();
          }
        }));
        console.log(`${kind.name}: ${happened} of ${framesMax} ${direction} lost`);
        expect(happened).toBeGreaterThan(5);
      }, 30_000);
    }
  });
}

/**
 * Over a real connection: the loss of each request and each reply of a fenced write, one after the other: done once.
 */
import { expect, test } from "bun:test";
import { type FencedNodeOperation, fencedWrite } from "../../../src/coordination/fence/fenced_write.ts";
import { findOwnHolderNode } from "../../../src/coordination/admin/own_holder.ts";
import { backends, describeBackend, type ServerNode } from "../../support/backends.ts";
import { ChaosProxy, type Direction } from "../../support/chaos_proxy.ts";
import { LockCrew } from "../../support/lock_crew.ts";
import { observedBackend } from "../../support/observed_backend.ts";

/** Requests of a look and a write on a tree that has never been written to; with room to spare. */
const framesMax = 14;

const text = (value: string) => new TextEncoder().encode(value);

for (const kind of backends) {
  describeBackend(kind, () => {
    const rig = observedBackend(kind);

    for (const direction of ["requests", "replies"] satisfies Direction[]) {
      test(`any of the ${direction} may be lost, and each write is done once`, async () => {
        await using crew = new LockCrew(rig.backend.servers);
        const { address } = rig.backend.nodes[0] as ServerNode;
        const lease = await crew.acquire(await crew.client(), "fenced");
        let happened = 0;
        for (let nth = 0; nth < framesMax; nth++) {
          const proxy = await ChaosProxy.start(address);
          try {
            const zk = await crew.client({ servers: proxy.servers });
            const at = `/${direction}-${nth}`;
            void proxy.onFrame({ direction, nth, action: "drop" }).then(() => happened++);
            const write = async (deed: FencedNodeOperation) => {
              const holder = await findOwnHolderNode(zk, lease.path, [lease.holderId]);
              expect(holder?.token).toBe(lease.fencingToken);
              const held = [{ name: lease.name, node: holder?.node ?? "" }];
              return await fencedWrite(zk, deed, { held, root: `${crew.root}/${direction}${nth}` });
            };
            await write({ do: "create", path: `${at}/a`, data: text("1"), parents: true, sequential: false });
            const set = await write({ do: "set", path: `${at}/a`, data: text("2"), version: -1 });
            expect([set.nodeVersion, (await rig.observer.exists(`${at}/a`))?.version]).toEqual([1, 1]);
            const log = await write({
              do: "create",
              path: `${at}/log-`,
              data: text("x"),
              parents: false,
              sequential: true,
            });
            const { children } = await rig.observer.getChildren(at);
            expect(children.map((child) => `${at}/${child}`).sort()).toEqual([`${at}/a`, log.path]);
            await zk.close();
          } finally {
            await proxy.close();
          }
        }
        console.log(`${kind.name}: ${happened} of ${framesMax} ${direction} lost`);
        expect(happened).toBeGreaterThan(8);
        await lease.release();
      }, 30_000);
    }

    test(
      "no server to ask what became of it: the outcome is unknown, and said so within the session timeout",
      async () => {
        await using crew = new LockCrew(rig.backend.servers);
        const lease = await crew.acquire(await crew.client(), "unknown");
        const proxy = await ChaosProxy.start((rig.backend.nodes[0] as ServerNode).address);
        try {
          const zk = await crew.client({ servers: proxy.servers, sessionTimeoutMs: 2000 });
          const holder = await findOwnHolderNode(zk, lease.path, [lease.holderId]);
          const held = [{ name: lease.name, node: holder?.node ?? "" }];
          const make: FencedNodeOperation = {
            do: "create",
            path: "/unknown",
            data: text(""),
            parents: false,
            sequential: false,
          };
          await fencedWrite(zk, make, { held, root: crew.root });
          void proxy.onFrame({ direction: "replies", nth: 0, action: "drop" }).then(() => proxy.refuse());
          const set: FencedNodeOperation = { do: "set", path: "/unknown", data: text("x"), version: -1 };
          const startMs = performance.now();
          const failure = await fencedWrite(zk, set, { held, root: crew.root }).catch((error) => error);
          expect([failure.code, performance.now() - startMs < 6000]).toEqual(["OUTCOME_UNKNOWN", true]);
          expect(failure.message).toStartWith('The outcome is unknown: "/unknown" may have been set; ');
          expect((await rig.observer.exists("/unknown"))?.version).toBe(1);
        } finally {
          await proxy.close();
        }
      },
      20_000,
    );

    test("given up by a lock's holder while the write is on its way: nothing is written", async () => {
      await using crew = new LockCrew(rig.backend.servers);
      const lease = await crew.acquire(await crew.client(), "late");
      const zk = await crew.client();
      const holder = await findOwnHolderNode(zk, lease.path, [lease.holderId]);
      await lease.release();
      const held = [{ name: lease.name, node: holder?.node ?? "" }];
      const deed: FencedNodeOperation = {
        do: "create",
        path: "/late",
        data: text(""),
        parents: false,
        sequential: false,
      };
      const written = fencedWrite(zk, deed, { held, root: crew.root });
      expect(await written.catch((error) => error.code)).toBe("STALE_TOKEN");
      expect(await rig.observer.exists("/late")).toBeNull();
    });
  });
}

import { afterAll, beforeAll, expect, test } from "bun:test";
import { coordinationFolderPath } from "../../../src/coordination/nodes/node_paths.ts";
import { lockStatus } from "../../../src/coordination/lock/lock_status.ts";
import { describeBackend, type RunningBackend, type ServerNode } from "../../support/backends.ts";
import { tierBackends } from "../../support/tier.ts";
import { ChaosProxy } from "../../support/chaos_proxy.ts";
import { dose } from "../../support/dose.ts";
import { eventually } from "../../support/eventually.ts";
import { LockCrew } from "../../support/lock_crew.ts";

const waiters = dose({ gate: 200, full: 1000 });
const containerCheckMs = 500;

for (const kind of tierBackends) {
  describeBackend(kind, () => {
    let backend: RunningBackend;
    beforeAll(async () => void (backend = await kind.start({ containerCheckMs })), 40_000);
    afterAll(() => backend.close());

    test(
      `${waiters} sessions wait for one lock: all get it once, at most 3 watch events and 8 requests each`,
      async () => {
        const proxy = await ChaosProxy.start((backend.nodes[0] as ServerNode).address);
        try {
          await using crew = new LockCrew(proxy.servers);
          const observer = await crew.client({ servers: backend.servers });
          const first = await crew.acquire(observer, "one");
          const holding = (await crew.clients(waiters)).map((zk) => crew.hold(zk, "one"));
          await eventually(
            async () =>
              (await observer.exists(`${coordinationFolderPath("locks", crew.root)}/one/q`))?.numChildren === waiters,
            { withinMs: 20_000 },
          );
          const before = { ...proxy.counts };
          await first.release();
          await Promise.all(holding);
          const requests = (proxy.counts.requests - before.requests) / waiters;
          const events = (proxy.counts.events - before.events) / waiters;
          console.log(`${kind.name}: a hand-over costs ${requests} requests and ${events} watch events`);
          expect([crew.tokens.length, crew.holdersMax]).toEqual([waiters, 1]);
          crew.expectTokensToGrow();
          expect(requests).toBeLessThanOrEqual(8);
          expect(events).toBeLessThanOrEqual(3);
          expect((await lockStatus(observer, "one", { root: crew.root })).waiters).toEqual([]);
        } finally {
          await proxy.close();
        }
      },
      60_000,
    );

    const names = dose(kind.kind === "keeper" ? { gate: 2000, full: 100_000 } : { gate: 300, full: 1000 });
    test(`${names} different names leave no node behind`, async () => {
      await using crew = new LockCrew(backend.servers);
      const clients = await crew.clients(16);
      let next = 0;
      await Promise.all(clients.map(async (zk) => {
        while (next < names) await (await crew.acquire(zk, `item/${next++}`)).release();
      }));
      const observer = await crew.client();
      const left = async () => (await observer.exists(coordinationFolderPath("locks", crew.root)))?.numChildren === 0;
      const withinMs = dose({ gate: 12_000, full: 120_000 });
      await eventually(left, { withinMs, everyMs: 50, what: "the names to be reaped" });
    }, dose({ gate: 30_000, full: 600_000 }));
  });
}

/**
 * Records of holds by many holders at the same time, on the keeper, on ZooKeeper and on an ensemble whose servers lag.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { deleteLockHistory } from "../../../src/coordination/history/clear_history.ts";
import { defaultHistoryLimits, historyNodePath } from "../../../src/coordination/history/history_log.ts";
import type { RecordedHoldEnd } from "../../../src/coordination/history/history_record.ts";
import { readHistoryReport } from "../../../src/coordination/history/history_report.ts";
import {
  LockHoldRecorder,
  type LockHoldRecorderOptions,
  readUnrecordedHolds,
} from "../../../src/coordination/history/hold_history.ts";
import { countRefusedCall } from "../../../src/coordination/history/refused_calls.ts";
import { unknownHolder } from "../../../src/coordination/nodes/holder_info.ts";
import { acquireLock, type AcquireLockOptions } from "../../../src/coordination/lock/acquire_lock.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { backends, describeBackend, type RunningBackend, zooKeeperEnsemble } from "../../support/backends.ts";
import { eventually } from "../../support/eventually.ts";
import { LockCrew } from "../../support/lock_crew.ts";

const done: RecordedHoldEnd = { result: "done", exitCode: 0, signal: null, why: "" };

class HistoryCrew extends LockCrew {
  options(zk: ZooKeeper): LockHoldRecorderOptions {
    return {
      ...{ kind: "lock", limits: defaultHistoryLimits, info: { ...unknownHolder, host: "db1", pid: 7 } },
      ...{ root: this.root, acl: zk.acl, clock: systemClock(), random: () => 0.5 },
    };
  }

  async begin(zk: ZooKeeper, name: string, more: AcquireLockOptions = {}) {
    const lease = await acquireLock(zk, name, { root: this.root, ...more });
    return { lease, history: new LockHoldRecorder(zk, lease, this.options(zk)) };
  }

  async recorded(zk: ZooKeeper, name: string, more: AcquireLockOptions = {}): Promise<void> {
    const { lease, history } = await this.begin(zk, name, more);
    expect(await history.end(done)).toBeNull();
    expect(lease.isHeld()).toBe(false);
  }

  async report(zk: ZooKeeper, name: string) {
    return await readHistoryReport(zk, name, { kind: "lock", root: this.root });
  }
}

for (const kind of [...backends, zooKeeperEnsemble]) {
  describeBackend(kind, () => {
    let backend: RunningBackend;
    beforeAll(async () => void (backend = await kind.start()), 60_000);
    afterAll(() => backend.close());

    test("each of many holds at the same time is counted once, and the lock is free after each", async () => {
      await using crew = new HistoryCrew(backend.servers);
      const clients = await crew.clients(8);
      const permits = { mode: "permit", limit: 8 } as const;
      await Promise.all(clients.map(async (zk) => {
        for (let round = 0; round < 3; round++) await crew.recorded(zk, "gpu", permits);
      }));
      const [zk] = clients as [ZooKeeper];
      const { counters, records, running } = await crew.report(zk, "gpu");
      expect(counters.results).toMatchObject({ done: 24, lost: 0 });
      expect(new Set(records.map(({ token }) => token)).size).toBe(24);
      expect(running).toEqual([]);
      for (let round = 0; round < 3; round++) await crew.recorded(zk, "gpu", permits);
      expect((await crew.report(zk, "gpu")).counters.results).toMatchObject({ done: 27, lost: 0 });
      expect(await readUnrecordedHolds(zk, historyNodePath("gpu", { root: crew.root }))).toEqual([]);
    }, 60_000);

    test("a chain of holders that are granted in advance: each that dies is lost, each other one is done", async () => {
      await using crew = new HistoryCrew(backend.servers);
      const clients = await crew.clients(12);
      await Promise.all(clients.map(async (zk, index) => {
        const { history, lease } = await crew.begin(zk, "chain");
        if (index % 3 > 0) return expect(await history.end(done)).toBeNull();
        const path = historyNodePath("chain", { root: crew.root });
        const hasMark = async () =>
          (await readUnrecordedHolds(zk, path)).some(({ guid }) => guid === lease.holderId) || null;
        await eventually(hasMark, { what: "the mark of the hold" });
        await zk.close();
      }));
      const zk = await crew.client();
      const shown = (await crew.report(zk, "chain")).counters.results;
      await crew.recorded(zk, "chain");
      const { counters } = await crew.report(zk, "chain");
      expect([shown.done, shown.lost]).toEqual([8, counters.results.lost]);
      expect(counters.results).toMatchObject({ done: 9, lost: 4 });
    }, 60_000);

    test("refused calls at the same time are all counted; forgetting during a hold stops no record", async () => {
      await using crew = new HistoryCrew(backend.servers);
      const clients = await crew.clients(8);
      await Promise.all(clients.map((zk) => countRefusedCall(zk, "busy", crew.options(zk))));
      const [zk] = clients as [ZooKeeper];
      expect((await crew.report(zk, "busy")).refusals).toMatchObject({ count: 8, host: "db1", pid: 7 });
      await crew.recorded(zk, "busy");
      const { lease, history } = await crew.begin(zk, "busy");
      expect(await deleteLockHistory(zk, "busy", { root: crew.root })).toBe(true);
      await history.end(done);
      await lease.release();
      await crew.recorded(zk, "busy");
      const { counters, refusals } = await crew.report(zk, "busy");
      expect([counters.results.lost, refusals]).toEqual([0, null]);
      expect(counters.results.done).toBeGreaterThan(0);
    }, 60_000);
  });
}

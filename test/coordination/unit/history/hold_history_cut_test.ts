/**
 * A reply cut at every request of a recorded hold: it is recorded once, the lock is released, and nothing is left on
 * the servers.
 */
import { expect, test } from "bun:test";
import { historyNodePath } from "../../../../src/coordination/history/history_log.ts";
import { readHistoryReport } from "../../../../src/coordination/history/history_report.ts";
import { LockHoldRecorder, readUnrecordedHolds } from "../../../../src/coordination/history/hold_history.ts";
import { defaultHistoryLimits } from "../../../../src/coordination/history/history_log.ts";
import type { RecordedHoldEnd } from "../../../../src/coordination/history/history_record.ts";
import { acquireLock } from "../../../../src/coordination/lock/acquire_lock.ts";
import type { ZooKeeperLease } from "../../../../src/coordination/nodes/zookeeper_lease.ts";
import { unknownHolder } from "../../../../src/coordination/nodes/holder_info.ts";
import { openAcl } from "../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { cutEverywhere } from "../../../support/cut_everywhere.ts";
import type { Cut, FakeZooKeeper } from "../../../support/fake_zookeeper.ts";
import { LockBench } from "../../../support/lock_bench.ts";

const done: RecordedHoldEnd = { result: "done", exitCode: 0, signal: null, why: "" };
const path = historyNodePath("demo");

class HistoryBench extends LockBench {
  async hold(zk: FakeZooKeeper): Promise<{ readonly lease: ZooKeeperLease; readonly history: LockHoldRecorder }> {
    const lease = await this.within(acquireLock(zk, "demo", { clock: this.clock }), 70_000);
    const info = { ...unknownHolder, host: "db1", pid: 812 };
    const history = new LockHoldRecorder(zk, lease, {
      kind: "lock",
      limits: defaultHistoryLimits,
      info,
      acl: openAcl,
      clock: this.clock,
      random: () => 0.5,
    });
    return { lease, history };
  }

  /** Ends as a command does: without a record, the lease is released. */
  async end({ lease, history }: { readonly lease: ZooKeeperLease; readonly history: LockHoldRecorder }): Promise<void> {
    await this.within(history.end(done), 20_000);
    await this.within(lease.release().catch(() => {}), 70_000);
  }

  /** The results, sorted: all times are the same here. */
  async results(): Promise<string[]> {
    const { records, counters } = await this.within(readHistoryReport(this.client(), "demo", { kind: "lock" }));
    const { done, lost } = counters.results;
    const countOf = (one: string) => records.filter(({ result }) => result === one).length;
    expect([done, lost]).toEqual([countOf("done"), countOf("lost")]);
    return records.map(({ result }) => result).sort();
  }
}

const everywhere = (scenario: (bench: HistoryBench, cut?: Cut) => Promise<number>) =>
  cutEverywhere((cut) => scenario(new HistoryBench(), cut));

test("of the first hold", async () => {
  await everywhere(async (bench, cut) => {
    const zk = bench.client(cut);
    await bench.end(await bench.hold(zk));
    await bench.clock.advance(3000);
    expect([...bench.queue, ...bench.holders]).toEqual([]);
    expect(await bench.results()).toEqual(["done"]);
    // The next hold leaves no mark, neither its own nor the first one's.
    await bench.end(await bench.hold(bench.client()));
    expect(await bench.results()).toEqual(["done", "done"]);
    expect(await readUnrecordedHolds(bench.client(), path)).toEqual([]);
    return zk.sent.length;
  });
});

test("of a hold after one whose host died", async () => {
  await everywhere(async (bench, cut) => {
    const dying = bench.client();
    await bench.hold(dying);
    await bench.clock.advance(100);
    dying.expire();
    expect(await bench.results()).toEqual(["lost"]); // shown before it is recorded
    const zk = bench.client(cut);
    await bench.end(await bench.hold(zk));
    await bench.clock.advance(3000);
    expect(await bench.results()).toEqual(["done", "lost"]);
    await bench.end(await bench.hold(bench.client()));
    expect(await bench.results()).toEqual(["done", "done", "lost"]);
    expect(await readUnrecordedHolds(bench.client(), path)).toEqual([]);
    return zk.sent.length;
  });
});

test("a mark that its holder ends while another reads it is not recorded as lost", async () => {
  const bench = new HistoryBench();
  const first = await bench.hold(bench.client());
  await bench.clock.advance(100);
  const [mark] = await readUnrecordedHolds(bench.client(), path);
  await bench.end(first);
  const deleting = bench.client().delete(mark?.path ?? "", mark?.version ?? 0);
  expect(await bench.failure(deleting)).toMatchObject({ reason: "NONODE" });
  expect(await bench.results()).toEqual(["done"]);
});

test("a history that cannot be written does not keep the lock from being released", async () => {
  const bench = new HistoryBench();
  const zk = bench.client();
  zk.multi =
    ((multi) => (requests) =>
      requests.some((request) => request.path.startsWith("/baton/history"))
        ? Promise.reject(new Error("the ACL does not allow it"))
        : multi.call(zk, requests))(zk.multi);
  const { lease, history } = await bench.hold(zk);
  expect(await bench.within(history.end(done))).toContain("the ACL does not allow it");
  await bench.within(lease.release());
  expect(bench.holders).toEqual([]);
});

/** A reply cut at every request of the watch of a long hold: the command of --on-busy-for runs once. */
import { expect, setDefaultTimeout, test } from "bun:test";
import process from "node:process";
import { BusyNoticeWatch } from "../../../../../commands/coordination/lock/busy_notice_watch.ts";
import { acquireLock } from "../../../../../src/coordination/lock/acquire_lock.ts";
import { openAcl } from "../../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { cutEverywhere } from "../../../../support/cut_everywhere.ts";
import { eventually } from "../../../../support/eventually.ts";
import { LockBench } from "../../../../support/lock_bench.ts";
import { fakeIo } from "../../../../support/fake_io.ts";

setDefaultTimeout(60_000);

test("a connection that is lost while the holder is looked for does not end the watch", async () => {
  await cutEverywhere(async (cut) => {
    const bench = new LockBench();
    await bench.within(acquireLock(bench.client(), "demo", { clock: bench.clock }), 70_000);
    const io = fakeIo({ env: process.env });
    const zk = bench.client(cut);
    const watch = new BusyNoticeWatch(zk, "demo", {
      notice: { afterMs: 5000, line: "exit 3" },
      root: "/baton",
      acl: openAcl,
      clock: bench.clock,
      io,
      random: () => 0.5,
    });
    watch.start();
    await eventually(async () => {
      await bench.clock.advance(1000);
      return io.stderr() !== "";
    });
    await bench.within(watch.end(), 40_000);
    expect(io.stderr()).toBe('baton: --on-busy-for of "demo" exited with 3\n');
    return zk.sent.length;
  });
});

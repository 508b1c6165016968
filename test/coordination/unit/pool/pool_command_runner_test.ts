/** What the end of the query's processes comes to, with those processes in the test's hand. */
import { expect, test } from "bun:test";
import { PoolCommandRunner } from "../../../../src/coordination/pool/pool_command_runner.ts";
import { poolCommandSettings, readPoolOptions } from "../../../../commands/coordination/pool/pool_options.ts";
import { PoolSignals } from "../../../../src/coordination/pool/pool_signals.ts";
import type { CoordinationServers } from "../../../../src/coordination/connect/coordination_servers.ts";
import type { SupervisedChildEnding } from "../../../../src/base/process/spawn/child_outcome.ts";
import { JobTable } from "../../../../src/base/process/proc/job_table.ts";
import type { CommandGuard } from "../../../../src/base/process/guard/guard.ts";
import { BatonError } from "../../../../src/base/errors.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { FakeLease } from "../../../support/fake_lease.ts";
import { fakeIo } from "../../../support/fake_io.ts";
import { callOf } from "../../../program/unit/commands/call_of.ts";

async function endOfQuery(ending: SupervisedChildEnding): Promise<string> {
  const io = fakeIo({ env: { HOME: "/nonexistent" } });
  const clock = systemClock();
  const options = readPoolOptions(await callOf(poolCommandSettings, ["c", "--query", "list", "--", "work"], io));
  using signals = new PoolSignals({ hangUpIgnored: false, listen: () => () => {} }, {
    drains: false,
    clock: systemClock(),
  });
  const jobs = new PoolCommandRunner(options, {
    report: { io, jobLog: null },
    output: null,
    clock,
    signals,
    guard: {} as CommandGuard,
    beside: new JobTable(),
    place: { servers: "zk1:2181", scope: "cluster" } as Partial<CoordinationServers> as CoordinationServers,
    prepare: () => ({ run: () => Promise.resolve({ ...ending, pid: 1, heldMs: 1 }), drop() {} }),
  });
  const thrown = await jobs.runQuery("list", new FakeLease(clock, 10_000, 9500)).catch((reason) => reason);
  return thrown instanceof BatonError ? `${thrown.code}: ${thrown.message}` : JSON.stringify(thrown);
}

const child = { kind: "signaled", signal: "SIGTERM", signalNumber: 15 } as const;

test("a query that is stopped because the component is about to be lost is a loss, and no bad query", async () => {
  expect(await endOfQuery({ kind: "lost", child })).toBe(
    'LOCK_LOST: Component "c" is lost: no server responded in time; the command was stopped by SIGTERM',
  );
  expect(await endOfQuery({ kind: "revoked", child })).toStartWith('REVOKED: Component "c" was given up');
});

test("what the query does wrong by itself is told with its line", async () => {
  expect(await endOfQuery({ kind: "exited", code: 3 })).toBe('IO: --query "list" failed: it exited with 3');
  expect(await endOfQuery({ kind: "time_limit", child })).toContain('"list" failed: it was stopped after 5 m');
});

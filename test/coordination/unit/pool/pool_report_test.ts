import { expect, test } from "bun:test";
import { poolCommandSettings, readPoolOptions } from "../../../../commands/coordination/pool/pool_options.ts";
import { PoolReport, poolSummaryText } from "../../../../src/coordination/pool/pool_report.ts";
import type { PoolItemCounts } from "../../../../src/coordination/pool/work_list.ts";
import { FakeClock } from "../../../support/fake_clock.ts";
import { fakeIo } from "../../../support/fake_io.ts";
import { callOf } from "../../../program/unit/commands/call_of.ts";

const none: PoolItemCounts = { claimed: 0, done: 0, failed: 0, busy: 0, skipped: 0, remaining: 0 };

test("the summary names failed items, up to three, and what others do only if there is some", () => {
  const text = (counts: Partial<PoolItemCounts>, failed: string[] = []) =>
    poolSummaryText("c", { ...none, ...counts }, { failed, elapsedMs: 12_000 });
  expect(text({ done: 3, skipped: 1 })).toBe('pool "c": 3 done, 0 failed, 1 skipped; 12 s');
  expect(text({ done: 1, failed: 2 }, ["a", "b\n"])).toBe('pool "c": 1 done, 2 failed ("a", "b\\n"), 0 skipped; 12 s');
  expect(text({ failed: 4 }, ["a", "b", "c"])).toContain('4 failed ("a", "b", "c", …)');
  expect(text({ done: 1, busy: 2, remaining: 3 })).toContain("0 skipped, 2 with other calls, 3 left;");
});

/** What a run of these words prints for an item that ended well and one that failed. */
async function printed(words: string[], { terminal = false, failed = 0 } = {}): Promise<string> {
  const io = fakeIo({ stderrIsTerminal: terminal, env: { HOME: "/nonexistent" } });
  const options = readPoolOptions(await callOf(poolCommandSettings, ["c", ...words, "--", "true"], io));
  using report = new PoolReport(options, io, { clock: new FakeClock(), jobLog: null });
  const counts = { ...none, claimed: 1 + failed, done: 1, failed };
  report.itemEnded({ item: "a", result: "done", counts: { ...counts, failed: 0 }, left: failed });
  if (failed > 0) report.itemEnded({ item: "b", result: "failed", counts, left: 0 });
  report.summarize();
  return io.stderr();
}

test("a call that runs all items prints the summary; one of cron only after a failure, or to a person", async () => {
  expect(await printed(["--items", "a,b"])).toStartWith('baton: pool "c": 1 done');
  expect(await printed(["--items", "a,b", "-q"])).toBe("");
  for (const round of [["--query", "ls"], ["--items", "a,b", "--one-round"]]) {
    expect(await printed(round)).toBe("");
    expect(await printed(round, { failed: 1 })).toContain('1 failed ("b")');
    expect(await printed(round, { terminal: true })).toContain("1 done");
    expect(await printed([...round, "-v"])).toContain("1 done");
  }
});

test("a run that ends before any of its items prints no summary", async () => {
  const io = fakeIo({ env: { HOME: "/nonexistent" } });
  const options = readPoolOptions(await callOf(poolCommandSettings, ["c", "--items", "a", "--", "true"], io));
  using report = new PoolReport(options, io, { clock: new FakeClock(), jobLog: null });
  report.summarize();
  expect(io.stderr()).toBe("");
});

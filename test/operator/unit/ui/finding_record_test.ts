import { expect, test } from "bun:test";
import { asJudgedRows, type FindingChange, FindingRecord } from "../../../../src/operator/ui/finding_record.ts";
import { sampleNowMs, samplePage } from "../../../support/ui_sample_rows.ts";

const { tables: { pools = {}, locks = {} } } = samplePage(sampleNowMs);
const pool = pools["thumbnails"] ?? null;
if (pool === null) throw new Error("the sample has no pool");
const failed = asJudgedRows("pools", pool);
const fine = asJudgedRows("pools", { ...pool, failed: 0 });
const place = { table: "pools", key: "thumbnails" } as const;
const timeOf = (ms: number) => new Date(sampleNowMs + ms).toISOString();
const told = (changes: readonly FindingChange[]) =>
  changes.map(({ finding, row, isNew }) => [finding.id, row?.since ?? null, row?.isOlder ?? null, isNew]);

test("a finding keeps the time at which it was first seen, until it ends", () => {
  const record = new FindingRecord();
  expect(record.judge(place, fine, sampleNowMs)).toEqual([]);
  expect(told(record.judge(place, failed, sampleNowMs + 1000))).toEqual([
    ["pool-items-failed", timeOf(1000), false, true],
  ]);
  expect(told(record.judge(place, failed, sampleNowMs + 9000))).toEqual([
    ["pool-items-failed", timeOf(1000), false, false],
  ]);
  expect(told(record.judge(place, fine, sampleNowMs + 9500))).toEqual([["pool-items-failed", null, null, false]]);
  expect(record.judge(place, fine, sampleNowMs + 9900)).toEqual([]);
});

test("a finding of an object that was never judged may be older", () => {
  const record = new FindingRecord();
  expect(told(record.judge(place, failed, sampleNowMs))).toEqual([["pool-items-failed", timeOf(0), true, true]]);
});

test("what began while no server responded may be older than its first judgment", () => {
  const record = new FindingRecord();
  record.judge(place, fine, sampleNowMs);
  record.startAgain();
  expect(told(record.judge(place, failed, sampleNowMs + 5))).toEqual([["pool-items-failed", timeOf(5), true, true]]);
});

test("an object that is gone has no findings", () => {
  const record = new FindingRecord();
  record.judgeTable("pools", new Map([["thumbnails", failed]]), sampleNowMs);
  expect(told(record.judgeTable("pools", new Map(), sampleNowMs))).toEqual([["pool-items-failed", null, null, false]]);
});

test("two findings of one kind about one object have keys of their own", () => {
  const lock = locks["ledger-close"];
  const holder = lock?.first_holders[0];
  if (lock === undefined || lock === null || holder === undefined) throw new Error("the sample has no such lock");
  const both = asJudgedRows("locks", { ...lock, holders: 2, first_holders: [holder, { ...holder, pid: 813 }] });
  const changes = new FindingRecord().judge({ table: "locks", key: "ledger-close" }, both, sampleNowMs);
  expect(new Set(changes.map(({ key }) => key)).size).toBe(2);
});

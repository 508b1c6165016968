/** Reads the rows of all products once, and decides what is wrong with them. */
import type { Finding, JudgedRows } from "../../src/base/rows/finding.ts";
import { makeFinding } from "../../src/base/rows/finding.ts";
import { type RowChange, rowKinds } from "../../src/base/rows/row_kinds.ts";
import { judgeRows } from "../../src/base/rows/row_findings.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import type { ProductView, RowSource } from "../product.ts";
import { type OpenRowSource, RowSources, type RowSourcesCall } from "./row_sources.ts";

/** How long rows are followed until all have been read once, in milliseconds. Objects that change are read again. */
const followMsMax = 30_000;

/** The findings of all rows, and how many topics and message stores were read. */
export interface RowProblems {
  readonly findings: readonly Finding[];
  readonly topics: number;
  readonly stores: number;
}

/** Returns the findings of all products. Rejects if the coordination service fails. */
export async function findRowProblems(
  views: readonly ProductView[],
  call: RowSourcesCall,
  zk: ZooKeeper,
): Promise<RowProblems> {
  await using sources = await RowSources.open(views, call, rowKinds);
  const readings = await Promise.all(sources.all.map((source) => readJudgedRows(source, zk)));
  const rows: JudgedRows = Object.assign({}, ...readings.map((reading) => reading.rows));
  const { topic = [], store = [] } = rows;
  const findings = [...judgeRows(rows, Date.now()), ...readings.flatMap((reading) => reading.findings)];
  return { findings, topics: topic.length, stores: store.length };
}

interface JudgedReading {
  readonly rows: JudgedRows;
  /** Findings for objects that could not be read. */
  readonly findings: readonly Finding[];
}

async function readJudgedRows({ source, kinds }: OpenRowSource, zk: ZooKeeper): Promise<JudgedReading> {
  const { follow } = source;
  if (follow !== undefined) return await readFollowedRows(follow, zk);
  const signal = new AbortController().signal; // never aborts, because SIGINT ends the whole process
  const { rows, problems = [] } = await source.read(zk, { kinds, all: false, long: false, signal });
  const where = "message stores";
  const action = "check the store and its access";
  const findings = problems.map((what) => makeFinding("store-unreadable", { where, what, action }));
  return { rows: rows as JudgedRows, findings };
}

/** Follows a source until all of its rows have been read once. They have more details than rows that are listed. */
async function readFollowedRows(follow: NonNullable<RowSource["follow"]>, zk: ZooKeeper): Promise<JudgedReading> {
  const clock = systemClock();
  const rows = new Map<string, RowChange>();
  const end = new AbortController();
  const endMs = clock.now() + followMsMax;
  let isWhole = false;
  for await (const { changes, isComplete, isCut } of follow(zk, { signal: end.signal, clock, gatherMs: 0 })) {
    for (const change of changes) rows.set(`${change.kind} ${change.key}`, change);
    isWhole = isComplete && !isCut;
    if (isComplete || clock.now() > endMs) break;
  }
  end.abort(new Error("all rows have been read"));
  const byKind = Map.groupBy([...rows.values()].filter(({ row }) => row !== null), ({ kind }) => kind);
  const found = Object.fromEntries([...byKind].map(([kind, all]) => [kind, all.map(({ row }) => row)]));
  const what = `there are too many locks, or they change too often: only ${rows.size} objects were checked`;
  const action = "check the others with baton who, or use several roots";
  return { rows: found, findings: isWhole ? [] : [makeFinding("objects-unchecked", { where: "locks", what, action })] };
}

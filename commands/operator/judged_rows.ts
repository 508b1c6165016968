/** Reads the rows of all products once, and decides what is wrong with them. */
import type { Finding, JudgedRows } from "../../src/base/rows/finding.ts";
import { makeFinding } from "../../src/base/rows/finding.ts";
import { type RowChange, rowKinds } from "../../src/base/rows/row_kinds.ts";
import { judgeRows } from "../../src/base/rows/row_findings.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import type { ProductView, RowSource } from "../product.ts";
import { type OpenRowSource, RowSources, type RowSourcesCall } from "./row_sources.ts";

const judgedKinds = rowKinds.filter((kind) => kind !== "process");

/** Returns the findings of all products. Rejects if the coordination service fails. */
export async function findRowProblems(
  views: readonly ProductView[],
  call: RowSourcesCall,
  zk: ZooKeeper,
): Promise<Finding[]> {
  await using sources = await RowSources.open(views, call, judgedKinds);
  const readings = await Promise.all(sources.all.map((source) => readJudgedRows(source, zk)));
  const rows: JudgedRows = Object.assign({}, ...readings.map((reading) => reading.rows));
  const unreadable = readings.flatMap(({ problems }) => problems).map((what) => {
    return makeFinding("store-unreadable", { where: "message stores", what, action: "check the store and its access" });
  });
  return [...judgeRows(rows, Date.now()), ...unreadable];
}

interface JudgedReading {
  readonly rows: JudgedRows;
  readonly problems: readonly string[];
}

async function readJudgedRows({ source, kinds }: OpenRowSource, zk: ZooKeeper): Promise<JudgedReading> {
  if (source.follow !== undefined) return { rows: await readFollowedRows(source, zk), problems: [] };
  const signal = new AbortController().signal; // never aborts, because SIGINT ends the whole process
  const { rows, problems = [] } = await source.read(zk, { kinds, all: false, long: false, signal });
  return { rows: rows as JudgedRows, problems };
}

/** Follows a source until all of its rows have been read once. They have more details than rows that are listed. */
async function readFollowedRows(source: RowSource, zk: ZooKeeper): Promise<JudgedRows> {
  const rows = new Map<string, RowChange>();
  const end = new AbortController();
  const rounds = source.follow?.(zk, { signal: end.signal, clock: systemClock(), gatherMs: 0 }) ?? [];
  for await (const { changes, isComplete } of rounds) {
    for (const change of changes) rows.set(`${change.kind} ${change.key}`, change);
    if (isComplete) break;
  }
  end.abort(new Error("all rows have been read"));
  const byKind = Map.groupBy([...rows.values()].filter(({ row }) => row !== null), ({ kind }) => kind);
  return Object.fromEntries([...byKind].map(([kind, found]) => [kind, found.map(({ row }) => row)]));
}

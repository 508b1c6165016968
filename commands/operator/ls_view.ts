/** Formats the output of `baton ls`: tables, lines of changes, JSON. The functions have no side effects. */
import type { CoordinationObjectRow, HolderRow } from "../../src/base/rows/object_row.ts";
import type { PoolRow } from "../../src/base/rows/pool_row.ts";
import type { ProcessMetricsRow } from "../../src/base/rows/process_row.ts";
import { objectDetailsKey, type RowKind, rowKinds, type RowSnapshot } from "../../src/base/rows/row_kinds.ts";
import { serversTable, topicsTable } from "../../src/base/terminal/row_tables.ts";
import {
  brokenText,
  instantToSecondText,
  passedTimeText,
  sessionIdText,
  topicStateText,
} from "../../src/base/rows/row_texts.ts";
import { isScheduleOverdue, type ScheduleRow, waitingTry } from "../../src/base/rows/schedule_row.ts";
import { isStoreUnattended, type StoreRow } from "../../src/base/rows/store_row.ts";
import { formatPassedTime } from "../../src/base/support/duration.ts";
import { type TableCell, tableHeadCells } from "../../src/base/terminal/table.ts";
import type { RowRates } from "../../src/operator/lists/rates.ts";
import type { LsJson } from "../json_shapes/lock_shapes.ts";
import type { WithCoordinationScope } from "./who_view.ts";

export type LsReading = WithCoordinationScope<RowSnapshot> & {
  /** When the rows were read, in milliseconds of the wall clock. */
  readonly atMs: number;
  readonly rates: RowRates;
};

export function isEmptyReading({ rows }: LsReading): boolean {
  return rowKinds.every((kind) => (rows[kind] ?? []).length === 0);
}

/**
 * Returns a table for each kind that has rows, and a table of the problems. `nowMs` is the present time of the wall
 * clock.
 */
export function lsTables(reading: LsReading, nowMs: number): TableCell[][][] {
  const { rows, rates, problems = [] } = reading;
  const tables = [
    objectsTable(reading),
    schedulesTable(rows.schedule ?? [], nowMs),
    serversTable(rows.server ?? []),
    topicsTable(rows.topic ?? []),
    storesTable(rows.store ?? [], { rates, nowMs }),
    processesTable(rows.process ?? [], rates),
  ];
  return [
    ...tables.filter(([, ...body]) => body.length > 0),
    ...problems.length === 0 ? [] : [problems.map((text): TableCell[] => [{ text, style: "red" }])],
  ];
}

type ListedObject = CoordinationObjectRow & { readonly kind: "lock" | "election" | "barrier" | "gate" | "pool" };

const objectsOf = ({ rows }: LsReading): ListedObject[] =>
  (["lock", "election", "barrier", "gate", "pool"] as const).flatMap((kind) => {
    return (rows[kind] ?? []).map((row) => ({ ...row, kind }));
  });

function objectsTable(reading: LsReading): TableCell[][] {
  const objects = objectsOf(reading);
  const { details } = reading;
  const hasResults = (reading.rows.pool ?? []).some((pool) => progressText(pool) !== "");
  const firstHead = [...head, ...hasResults ? ["RESULTS"] : []];
  const first = (row: ListedObject): TableCell[] => [
    ...objectCells(row),
    ...hasResults ? [row.kind === "pool" ? progressText(row as ListedObject & PoolRow) : ""] : [],
  ];
  if (details === undefined) return [tableHeadCells(firstHead), ...objects.map(first)];
  const long = objects.flatMap((row) => {
    const holders = details.get(objectDetailsKey(row.kind, row.name))?.holders ?? [];
    return holders.length === 0
      ? [[...first(row), ...holderHead.map(() => "-")]]
      : holders.map((holder) => [...first(row), ...holderCells(holder)]);
  });
  return [tableHeadCells([...firstHead, ...holderHead]), ...long];
}

const head = ["KIND", "NAME", "HOLD", "WAIT"];
const holderHead = ["USER", "HOST", "PID", "COMMAND", "SINCE", "TOKEN", "SESSION", "REASON"];

const countText = (count: number | null) => String(count ?? "?");

function objectCells({ kind, name, holders, waiters }: ListedObject): TableCell[] {
  const waiting: TableCell = waiters === 0 ? "0" : { text: countText(waiters), style: "yellow" };
  return [kind, name, holders === 0 ? "0" : { text: countText(holders), style: "green" }, waiting];
}

function progressText({ done, failed }: PoolRow): string {
  return done + failed === 0 ? "" : `${done} done, ${failed} failed`;
}

function holderCells(holder: HolderRow): TableCell[] {
  const { user, host, pid, command, since, fencing_token, session_id, value, reason, revoke } = holder;
  const why = [value ?? "", reason, brokenText(revoke)].filter((text) => text !== "");
  const cells = [user, host, pid === 0 ? "" : String(pid), command, instantToSecondText(since), fencing_token];
  return [...cells, sessionIdText(session_id), why.join(", ")].map((text) => text || "-");
}

function schedulesTable(schedules: readonly ScheduleRow[], nowMs: number): TableCell[][] {
  return [
    tableHeadCells(["SCHEDULE OF", "TICKS", "NEXT", "STATE"]),
    ...schedules.map((row): TableCell[] => {
      const state = scheduleState(row, nowMs);
      return [
        row.name,
        ticksText(row),
        timeUntil(row.next, nowMs),
        state.isBad ? { ...state, style: "red" } : state.text,
      ];
    }),
  ];
}

const ticksText = ({ schedule, time_zone }: ScheduleRow) => `${schedule} (${time_zone})`;

function scheduleState(row: ScheduleRow, nowMs: number): { readonly text: string; readonly isBad: boolean } {
  const { running } = row;
  if (running !== null) {
    const where = running.host || "an unknown host";
    return { text: running.lost ? `lost on ${where}` : `runs on ${where}`, isBad: running.lost };
  }
  if (isScheduleOverdue(row, nowMs)) return { text: "overdue", isBad: true };
  const retry = waitingTry(row.retry, nowMs);
  if (retry === null) return { text: "-", isBad: false };
  const when = retry.from === null ? "due" : `from ${instantToSecondText(retry.from)} on`;
  return { text: `try ${retry.attempt} ${when}`, isBad: true };
}

function timeUntil(instant: string | null, nowMs: number): string {
  if (instant === null) return "-";
  const restMs = Date.parse(instant) - nowMs;
  return restMs <= 0 ? "due" : `in ${formatPassedTime(restMs)}`;
}

interface StoresOptions {
  readonly rates: RowRates;
  readonly nowMs: number;
}

function storesTable(stores: readonly StoreRow[], { rates, nowMs }: StoresOptions): TableCell[][] {
  return [
    tableHeadCells(["STORE", "WAITING", "IN FLIGHT", "DEAD", "DONE", "RATE", "OLDEST", "NEXT TRY"]),
    ...stores.map((store): TableCell[] => {
      const { name, folder, states, oldest, next } = store;
      const trouble = storeTrouble(store);
      return [
        name,
        String(states.waiting.count),
        String(states.in_flight.count),
        states.dead.count === 0 ? "0" : { text: String(states.dead.count), style: "red" },
        String(states.done.count),
        rateText(rates.stores.get(folder)),
        passedTimeText(oldest, nowMs),
        trouble === "" ? timeUntil(next, nowMs) : { text: trouble, style: "yellow" },
      ];
    }),
  ];
}

/** Returns why the messages of a store are not tried; empty if they are tried. */
function storeTrouble(store: StoreRow): string {
  if (store.paused) return "paused";
  return isStoreUnattended(store) ? "no processor" : "";
}

function rateText(perSecond: number | undefined): string {
  if (perSecond === undefined) return "-";
  return `${perSecond >= 10 || perSecond === 0 ? Math.round(perSecond) : Math.round(perSecond * 10) / 10}/s`;
}

function processesTable(processes: readonly ProcessMetricsRow[], rates: RowRates): TableCell[][] {
  return [
    tableHeadCells(["PROCESS", "METRICS AT", "RATES", "NOW"]),
    ...processes.map((process) => processCells(process, rates.processes.get(process.address) ?? {})),
  ];
}

function processCells(
  { process, address, error, gauges }: ProcessMetricsRow,
  rates: Readonly<Record<string, number>>,
): TableCell[] {
  if (process === null) return [{ text: "unreachable", style: "red" }, address, "-", error ?? ""];
  const busy = Object.entries(rates).filter(([, rate]) => rate > 0).sort(([, a], [, b]) => b - a).slice(0, 4);
  return [
    process,
    address,
    busy.map(([what, rate]) => `${rateText(rate)} ${what}`).join(", ") || "-",
    Object.entries(gauges).map(([what, number]) => `${what} ${number}`).join(", "),
  ];
}

/**
 * Returns one line for each row, by kind and name. Lines that are compared contain no elapsed times, which would always
 * differ.
 */
export function lsLines(reading: LsReading): Map<string, string> {
  const { rows, details, atMs } = reading;
  const line = (kind: RowKind, name: string, ...cells: readonly string[]): [string, string] => {
    return [objectDetailsKey(kind, name), [kind, name, ...cells.filter((cell) => cell !== "")].join("  ")];
  };
  return new Map([
    ...objectsOf(reading).map((row) => {
      const { kind, name, holders, waiters } = row;
      const holding = details?.get(objectDetailsKey(kind, name))?.holders ?? [];
      const by = holding.map(({ user, host, pid }) => `${user}@${host}:${pid}`).join(",");
      const results = kind === "pool" ? progressText(row as ListedObject & PoolRow) : "";
      return line(kind, name, countText(holders), countText(waiters), results, by);
    }),
    ...(rows.schedule ?? []).map((row) => {
      const next = row.next === null ? "" : `next ${instantToSecondText(row.next)}`;
      return line("schedule", row.name, ticksText(row), next, scheduleState(row, atMs).text.replace(/^-$/, ""));
    }),
    ...(rows.server ?? []).map(({ server, endpoint, draining, topic_count }) =>
      line("server", server, endpoint ?? "offline", draining ? "draining" : "", `topics ${topic_count}`)
    ),
    ...(rows.topic ?? []).map((row) => line("topic", row.topic, row.server, topicStateText(row), `epoch ${row.epoch}`)),
    ...(rows.store ?? []).map((store) => {
      const { name, folder, states } = store;
      const counts = (["waiting", "in_flight", "dead", "done"] as const).map((state) =>
        `${state} ${states[state].count}`
      );
      return line("store", folder, name, ...counts, storeTrouble(store));
    }),
    ...(rows.process ?? []).map(({ address, process, error, gauges }) =>
      line("process", address, process ?? error ?? "", ...Object.entries(gauges).map(([what, now]) => `${what} ${now}`))
    ),
  ]);
}

const objectKinds: readonly string[] = ["lock", "election", "barrier", "gate", "pool"];

/** Returns the line that `--watch` prints when a row is gone. `line` is the last line of that row. */
export function goneRowLine(line: string): string {
  const [kind = "", name = ""] = line.split("  ");
  return `${kind}  ${name}  ${objectKinds.includes(kind) ? "0  0" : "gone"}`;
}

export function lsJson({ rows, details, scope, problems = [] }: LsReading): LsJson {
  return {
    version: 1,
    scope,
    locks: rows.lock ?? [],
    elections: rows.election ?? [],
    barriers: rows.barrier ?? [],
    gates: rows.gate ?? [],
    pools: rows.pool ?? [],
    schedules: rows.schedule ?? [],
    topics: rows.topic ?? [],
    servers: rows.server ?? [],
    stores: rows.store ?? [],
    processes: rows.process ?? [],
    problems,
    ...(details === undefined ? {} : { details: [...details.values()] }),
  };
}

/**
 * Returns the JSON that is compared with the previous reading. Values that change all the time are left out: disk space
 * of stores and processes, counters of processes.
 */
export function lsJsonToCompare(reading: LsReading): unknown {
  const { stores, processes, ...json } = lsJson(reading);
  return {
    ...json,
    stores: stores.map(({ disk: _disk, ...store }) => store),
    processes: processes.map(({ counters: _counters, disk_free_bytes: _free, ...process }) => process),
  };
}

/** The output of `baton who`: tables, lines of changes, JSON. Pure. */
import type { UseHolder, UseStatus, UseStatusKind, UseWaiter } from "../../src/coordination/admin/use_status.ts";
import type { CoordinationServers } from "../../src/coordination/connect/coordination_servers.ts";
import { nameOfHolder } from "../../src/coordination/nodes/holder_info.ts";
import { formatPassedTime } from "../../src/base/support/duration.ts";
import type { TextStyle } from "../../src/base/terminal/color.ts";
import { type TableCell, tableHeadCells } from "../../src/base/terminal/table.ts";
import type { UseHolderJson, UseWaiterJson, WhoJson } from "../json_shapes/lock_shapes.ts";
import { shortenHolderIds } from "../../src/base/support/short_ids.ts";

const holds: Readonly<Record<UseStatusKind, string>> = {
  lock: "holds",
  election: "leads",
  barrier: "runs",
  gate: "closed",
};

interface WhoRow {
  readonly state: TableCell;
  readonly one: UseHolder | UseWaiter;
  /** Place in the queue, from 1; empty for a holder. */
  readonly place: string;
  readonly how: string;
  readonly token: string;
}

function whoRows({ kind, holders, waiters }: Pick<UseStatus, "kind" | "holders" | "waiters">): WhoRow[] {
  const state = (text: string, style: TextStyle): TableCell => ({ text, style });
  return [
    ...holders.map((one): WhoRow => ({
      state: state(holds[kind], one.revoke === null && one.warning === undefined ? "green" : "red"),
      one,
      place: "",
      how: describeHolding(kind, one).join(", "),
      token: one.fencingToken?.toString() ?? "",
    })),
    ...waiters.map((one): WhoRow => ({
      state: state("waits", "yellow"),
      one,
      place: String(one.place),
      how: describeWaiting(kind, one).join(", "),
      token: "",
    })),
  ];
}

/** Returns the table of holders and waiters; empty if there are none. `nowMs` is the wall clock. */
export function whoTable(
  status: UseStatus,
  { nowMs, long }: { readonly nowMs: number; readonly long: boolean },
): TableCell[][] {
  const rows = whoRows(status);
  if (rows.length === 0) return [];
  if (long) return [tableHeadCells(longHead), ...rows.map(longRow)];
  const ids = shortenHolderIds(rows.flatMap(({ one }) => one.id ?? []));
  return [
    tableHeadCells(["STATE", "WHO", "FOR", "HOW", "ID", "REASON"]),
    ...rows.map(({ state, one, how }): TableCell[] => [
      state,
      nameOfHolder(one),
      one.sinceMs === 0 ? "-" : formatPassedTime(Math.max(0, nowMs - one.sinceMs)),
      how || "-",
      one.id === null ? "-" : ids.get(one.id) ?? one.id,
      reasonOf(one),
    ]),
  ];
}

const longHead = [
  "STATE",
  "QUEUE",
  "USER",
  "HOST",
  "PID",
  "COMMAND",
  "SINCE",
  "HOW",
  "TOKEN",
  "SESSION",
  "ID",
  "REASON",
];

function longRow({ state, one, place, how, token }: WhoRow): TableCell[] {
  const { user, host, pid, argv0, id } = one;
  const rest = [
    host,
    pid === 0 ? "" : String(pid),
    argv0,
    holdStartText(one),
    how,
    token,
    sessionIdText(one),
    id ?? "",
  ];
  return [state, ...[place, user, ...rest].map((text) => text || "-"), reasonOf(one)];
}

/** Returns the start in UTC, to the second; empty if it is unknown. */
export function holdStartText({ sinceMs }: { readonly sinceMs: number }): string {
  return sinceMs === 0 ? "" : new Date(sinceMs).toISOString().replace(/\.\d+Z$/, "Z");
}

/** Returns the session id as ZooKeeper's own tools write it; empty if there is none. */
export function sessionIdText({ sessionId }: { readonly sessionId: bigint | null }): string {
  return sessionId === null || sessionId === 0n ? "" : `0x${BigInt.asUintN(64, sessionId).toString(16)}`;
}

function reasonOf({ reason, revoke, warning }: UseHolder | UseWaiter): string {
  const notes = [revoke === null ? "" : "asked to release it", warning ?? ""].filter((note) => note !== "");
  return [reason, ...notes.map((note) => `(${note})`)].join(" ").trim();
}

/** Returns a line for each holder and waiter by its id. Lines contain no elapsed times. */
export function whoLines(status: UseStatus): Map<string, string> {
  const rows = whoRows(status);
  const ids = shortenHolderIds(rows.flatMap(({ one }) => one.id ?? []));
  return new Map(rows.map(({ state, one, place, how }) => {
    const word = typeof state === "string" ? state : state.text;
    const cells = [word, nameOfHolder(one), how, place === "" ? "" : `place ${place}`, idText(one, ids), reasonOf(one)];
    return [one.id ?? status.kind, cells.filter((cell) => cell !== "").join("  ")];
  }));
}

const idText = ({ id }: UseHolder | UseWaiter, ids: ReadonlyMap<string, string>) =>
  id === null ? "" : ids.get(id) ?? id;

/** Returns the line for a holder or waiter that is gone, by replacing the state, which is its first word. */
export function goneParticipantLine(line: string): string {
  return line.replace(/^\S+/, "gone ");
}

function describeHolding(kind: UseStatusKind, { mode, slot, rank, value }: UseHolder): string[] {
  if (kind === "election") return value === undefined ? [] : [value];
  return [
    ...(mode === null ? [] : [mode]),
    ...(slot === null ? [] : [`slot ${slot}`]),
    ...(rank === null ? [] : [`rank ${rank}`]),
  ];
}

function describeWaiting(kind: UseStatusKind, { mode, priority, value }: UseWaiter): string[] {
  const first = kind === "election" ? value : mode;
  return [...(first ? [first] : []), ...(priority === undefined ? [] : [`priority ${priority}`])];
}

/** A value that was read, with the scope that it applies to: this user, this machine or a cluster. */
export type WithCoordinationScope<T> = T & Pick<CoordinationServers, "scope">;

export function whoJson(
  { kind, name, path, scope, limit, holders, waiters }: WithCoordinationScope<UseStatus>,
): WhoJson {
  return {
    version: 1,
    scope,
    kind,
    name,
    path,
    limit,
    holders: holders.map(useHolderJson),
    waiters: waiters.map(useWaiterJson),
  };
}

const participantJson = (one: UseHolder | UseWaiter) => ({
  id: one.id,
  mode: one.mode,
  host: one.host,
  pid: one.pid,
  user: one.user,
  command: one.argv0,
  reason: one.reason,
  value: one.value ?? null,
  since: one.sinceMs === 0 ? null : new Date(one.sinceMs).toISOString(),
  session_id: one.sessionId?.toString() ?? null,
  session_timeout_ms: one.sessionTimeoutMs,
  revoke: one.revoke,
  warning: one.warning ?? null,
});

export const useHolderJson = (holder: UseHolder): UseHolderJson => ({
  ...participantJson(holder),
  slot: holder.slot,
  rank: holder.rank,
  fencing_token: holder.fencingToken?.toString() ?? null,
});

export const useWaiterJson = (waiter: UseWaiter): UseWaiterJson => ({
  ...participantJson(waiter),
  place: waiter.place,
  priority: waiter.priority ?? null,
});

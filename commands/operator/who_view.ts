/** Formats the output of `baton who`: tables, lines of changes, JSON. The functions have no side effects. */
import type {
  CoordinationObjectDetails,
  CoordinationObjectKind,
  HolderRow,
  WaiterRow,
} from "../../src/base/rows/object_row.ts";
import { brokenText, instantToSecondText, passedTimeText, sessionIdText } from "../../src/base/rows/row_texts.ts";
import { printable } from "../../src/base/support/text.ts";
import { nameOfHolderRow } from "../../src/coordination/nodes/participant_row.ts";
import type { CoordinationServers } from "../../src/coordination/connect/coordination_servers.ts";
import type { TextStyle } from "../../src/base/terminal/color.ts";
import { type TableCell, tableHeadCells } from "../../src/base/terminal/table.ts";
import type { WhoJson } from "../json_shapes/lock_shapes.ts";
import { shortenHolderIds } from "../../src/base/support/short_ids.ts";

const holds: Readonly<Record<CoordinationObjectKind, string>> = {
  lock: "holds",
  election: "leads",
  barrier: "runs",
  gate: "closed",
};

interface WhoRow {
  readonly state: TableCell;
  readonly one: HolderRow | WaiterRow;
  readonly name: string;
  /** The place in the queue, from 1; empty for a holder. */
  readonly place: string;
  readonly how: string;
  readonly token: string;
}

function whoRows(
  { kind, holders, waiters }: Pick<CoordinationObjectDetails, "kind" | "holders" | "waiters">,
): WhoRow[] {
  const state = (text: string, style: TextStyle): TableCell => ({ text, style });
  return [
    ...holders.map((one): WhoRow => ({
      state: state(holds[kind], one.revoke === null && one.warning === null ? "green" : "red"),
      one,
      // The process that has closed a gate has ended.
      name: kind === "gate" ? printable(`${one.user}@${one.host}`) : nameOfHolderRow(one),
      place: "",
      how: describeHolding(kind, one).join(", "),
      token: one.fencing_token ?? "",
    })),
    ...waiters.map((one): WhoRow => ({
      state: state("waits", "yellow"),
      one,
      name: nameOfHolderRow(one),
      place: String(one.place),
      how: describeWaiting(kind, one).join(", "),
      token: "",
    })),
  ];
}

/** Returns the table of holders and waiters; empty if there are none. `nowMs` is the present time of the wall clock. */
export function whoTable(
  status: CoordinationObjectDetails,
  { nowMs, long }: { readonly nowMs: number; readonly long: boolean },
): TableCell[][] {
  const rows = whoRows(status);
  if (rows.length === 0) return [];
  if (long) return [tableHeadCells(longHead), ...rows.map(longRow)];
  const ids = shortenHolderIds(rows.flatMap(({ one }) => one.id ?? []));
  return [
    tableHeadCells(["STATE", "WHO", "FOR", "HOW", "ID", "REASON"]),
    ...rows.map(({ state, one, name, how }): TableCell[] => [
      state,
      name,
      passedTimeText(one.since, nowMs),
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
  const { user, host, pid, command, id } = one;
  const rest = [
    host,
    pid === 0 ? "" : String(pid),
    command,
    instantToSecondText(one.since),
    how,
    token,
    sessionIdText(one.session_id),
    id ?? "",
  ];
  return [state, ...[place, user, ...rest].map((text) => text || "-"), reasonOf(one)];
}

function reasonOf({ reason, revoke, warning }: HolderRow | WaiterRow): string {
  const notes = [brokenText(revoke), warning ?? ""].filter((note) => note !== "");
  return [reason, ...notes.map((note) => `(${note})`)].join(" ").trim();
}

/**
 * Returns one line for each holder and waiter, by id. Lines that are compared contain no elapsed times, which would
 * always differ.
 */
export function whoLines(status: CoordinationObjectDetails): Map<string, string> {
  const rows = whoRows(status);
  const ids = shortenHolderIds(rows.flatMap(({ one }) => one.id ?? []));
  return new Map(rows.map(({ state, one, name, place, how }) => {
    const word = typeof state === "string" ? state : state.text;
    const cells = [
      word,
      name,
      how,
      place === "" ? "" : `place ${place}`,
      idText(one, ids),
      reasonOf(one),
    ];
    return [one.id ?? status.kind, cells.filter((cell) => cell !== "").join("  ")];
  }));
}

const idText = ({ id }: HolderRow | WaiterRow, ids: ReadonlyMap<string, string>) =>
  id === null ? "" : ids.get(id) ?? id;

/** Returns the line for a holder or waiter that is gone. `line` is its last line, which begins with its state. */
export function goneParticipantLine(line: string): string {
  return line.replace(/^\S+/, "gone ");
}

function describeHolding(kind: CoordinationObjectKind, { mode, slot, rank, value }: HolderRow): string[] {
  if (kind === "election") return value === null ? [] : [value];
  return [
    ...(mode === null ? [] : [mode]),
    ...(slot === null ? [] : [`slot ${slot}`]),
    ...(rank === null ? [] : [`rank ${rank}`]),
  ];
}

function describeWaiting(kind: CoordinationObjectKind, { mode, priority, value }: WaiterRow): string[] {
  const first = kind === "election" ? value : mode;
  return [...(first ? [first] : []), ...(priority === null ? [] : [`priority ${priority}`])];
}

/**
 * A value together with its scope, which is the set of processes that share it: those of this user, of this machine or
 * of a cluster.
 */
export type WithCoordinationScope<T> = T & Pick<CoordinationServers, "scope">;

export function whoJson({ scope, ...details }: WithCoordinationScope<CoordinationObjectDetails>): WhoJson {
  return { version: 1, scope, ...details };
}

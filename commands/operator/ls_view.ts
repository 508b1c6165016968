/** The output of `baton ls`: tables, lines of changes, JSON. Pure. */
import {
  type KindInUse,
  kindsInUse,
  type ObjectInUse,
  type ObjectsInUse,
} from "../../src/coordination/admin/list_in_use.ts";
import { useDetailsKey, type UseHolder, type UseStatus } from "../../src/coordination/admin/use_status.ts";
import { type TableCell, tableHeadCells } from "../../src/base/terminal/table.ts";
import type { LsJson } from "../json_shapes/lock_shapes.ts";
import { holdStartText, sessionIdText, useHolderJson, useWaiterJson, type WithCoordinationScope } from "./who_view.ts";

export interface LsReading {
  readonly found: ObjectsInUse;
  /** The holders and waiters by `useDetailsKey`; null without --long. */
  readonly details: ReadonlyMap<string, UseStatus> | null;
}

interface LsRow extends ObjectInUse {
  readonly kind: KindInUse;
}

/** Also returns true if an ACL hides the numbers. */
export function hasHoldersOrWaiters({ holders, waiters }: ObjectInUse): boolean {
  return holders !== 0 || waiters !== 0;
}

const rowsOf = ({ found }: LsReading): LsRow[] =>
  kindsInUse.flatMap((kind) => found[kind].map((one) => ({ ...one, kind })));

/** Returns the table of `baton ls`; empty if nothing is listed. */
export function lsTable(reading: LsReading): TableCell[][] {
  const rows = rowsOf(reading);
  if (rows.length === 0) return [];
  const { details } = reading;
  if (details === null) return [tableHeadCells(head), ...rows.map((row) => [...firstCells(row)])];
  const long = rows.flatMap((row) => {
    const holders = details.get(useDetailsKey(row.kind, row.name))?.holders ?? [];
    return holders.length === 0
      ? [[...firstCells(row), ...holderHead.map(() => "-")]]
      : holders.map((holder) => [...firstCells(row), ...holderCells(holder)]);
  });
  return [tableHeadCells([...head, ...holderHead]), ...long];
}

const head = ["KIND", "NAME", "HOLD", "WAIT"];
const holderHead = ["USER", "HOST", "PID", "COMMAND", "SINCE", "TOKEN", "SESSION"];

const countText = (count: number | null) => String(count ?? "?");

function firstCells({ kind, name, holders, waiters }: LsRow): TableCell[] {
  const waiting: TableCell = waiters === 0 ? "0" : { text: countText(waiters), style: "yellow" };
  return [kind, name, holders === 0 ? "0" : { text: countText(holders), style: "green" }, waiting];
}

function holderCells(holder: UseHolder): TableCell[] {
  const { user, host, pid, argv0, fencingToken } = holder;
  const cells = [user, host, pid === 0 ? "" : String(pid), argv0, holdStartText(holder), fencingToken?.toString()];
  return [...cells, sessionIdText(holder)].map((text) => text || "-");
}

/** Returns a line for each object, by its `useDetailsKey`. */
export function lsLines(reading: LsReading): Map<string, string> {
  return new Map(
    rowsOf(reading).map(({ kind, name, holders, waiters }) => {
      const holding = reading.details?.get(useDetailsKey(kind, name))?.holders ?? [];
      const by = holding.map(({ user, host, pid }) => `${user}@${host}:${pid}`).join(",");
      const cells = [kind, name, countText(holders), countText(waiters), by];
      return [useDetailsKey(kind, name), cells.filter((cell) => cell !== "").join("  ")];
    }),
  );
}

/** Returns the line of `--watch` for an object that is no longer listed. */
export function unlistedObjectLine(line: string): string {
  const [kind = "", name = ""] = line.split("  ");
  return `${kind}  ${name}  0  0`;
}

export function lsJson({ found, details, scope }: WithCoordinationScope<LsReading>): LsJson {
  return {
    version: 1,
    scope,
    locks: [...found.lock],
    elections: [...found.election],
    barriers: [...found.barrier],
    gates: [...found.gate],
    pools: [...found.pool],
    ...(details === null ? {} : { details: [...details.values()].map(detailsJson) }),
  };
}

function detailsJson({ kind, name, path, limit, holders, waiters }: UseStatus) {
  return { kind, name, path, limit, holders: holders.map(useHolderJson), waiters: waiters.map(useWaiterJson) };
}

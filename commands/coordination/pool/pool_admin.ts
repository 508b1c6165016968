/** `baton pool status` prints the items of a pool, and `baton pool clear` clears their results. Neither runs items. */
import process from "node:process";
import { spawnChild } from "../../../src/base/process/spawn/spawn_child.ts";
import { sendSignal } from "../../../src/base/process/proc/process_table.ts";
import { StopRequestListener } from "../../../src/base/process/supervise/signal_source.ts";
import { type Io, printJson } from "../../../src/base/terminal/io.ts";
import { printTable, tableHeadCells } from "../../../src/base/terminal/table.ts";
import { nameOfHolder } from "../../../src/coordination/nodes/holder_info.ts";
import { countPoolItems, poolDetails } from "../../../src/coordination/view/pool_rows.ts";
import { clearPoolResults } from "../../../src/coordination/pool/clear_pool_results.ts";
import {
  type PoolItemStatus,
  type PoolStatus,
  readPoolStatus,
} from "../../../src/coordination/pool/read_pool_status.ts";
import type { PoolPath, PoolPathTemplates } from "../../../src/coordination/pool/pool_path.ts";
import { describePoolPathDifferences } from "../../../src/coordination/pool/shared_pool_settings.ts";
import { rejectOnAbort } from "../../../src/base/support/abort.ts";
import { systemClock } from "../../../src/base/support/clock.ts";

import { deadlineAfter } from "../../../src/base/support/deadline.ts";
import { formatDuration } from "../../../src/base/support/duration.ts";
import { countWithNoun, printable } from "../../../src/base/support/text.ts";
import type { CommandCall } from "../../command.ts";
import { runInCoordinationSession } from "../../coordination_session.ts";
import { type ExitCode, exitCodes } from "../../../src/base/exit_codes.ts";
import type { poolCommandSettings, PoolStatusOptions } from "./pool_options.ts";
import {
  itemQueryError,
  itemQueryTimeoutMessage,
  readPoolItems,
  readPoolItemText,
} from "../../../src/coordination/pool/pool_source.ts";

export async function showPoolStatus(
  options: PoolStatusOptions,
  call: CommandCall<typeof poolCommandSettings>,
): Promise<ExitCode> {
  const { values, io } = call;
  const { component, path } = options;
  const named = await namedItems(options, { path, queryTimeoutMs: values.queryTimeout });
  const status = await runInCoordinationSession(call, (zk) => readPoolStatus(zk, component, { path, named }));
  if (values.json) {
    printJson(io, { version: 1, ...poolDetails(status) });
    return exitCodes.SUCCESS;
  }
  const printed = { io, quiet: values.quiet, nowMs: Date.now(), templates: path.templates, isNamed: named !== null };
  printStatus(status, printed);
  return exitCodes.SUCCESS;
}

/** Clears the results of the given items, or of all items. */
export async function clearPool(
  options: PoolStatusOptions,
  call: CommandCall<typeof poolCommandSettings>,
): Promise<ExitCode> {
  const { values, io } = call;
  const { component, path } = options;
  const named = await namedItems(options, { path: null, queryTimeoutMs: values.queryTimeout });
  const count = await runInCoordinationSession(
    call,
    (zk) => clearPoolResults(zk, { path, named, clock: systemClock() }),
  );
  const message = count === 0
    ? `pool "${component}" has no results ${named === null ? "" : "of these items "}to clear`
    : `cleared ${countWithNoun(count, "result")} of pool "${component}"`;
  if (!values.quiet) io.err(`baton: ${message}\n`);
  return exitCodes.SUCCESS;
}

/**
 * Returns the items that the call names; null for all items. Checks their lock paths, unless `path` is null. Rejects
 * like `readPoolItems`.
 */
async function namedItems(
  { component, items }: PoolStatusOptions,
  { path, queryTimeoutMs }: { readonly path: PoolPath | null; readonly queryTimeoutMs: number },
): Promise<readonly string[] | null> {
  if (items === null) return null;
  return await readPoolItems(items, {
    component,
    path,
    signal: new AbortController().signal, // never aborts: a signal ends the process while it reads a file or stdin
    query: (line) => runQuery(line, queryTimeoutMs),
  });
}

/**
 * Runs the query without acquiring a lock, and returns its output. Rejects with IO if the query fails or runs longer
 * than `timeoutMs`, or with BAD_DATA for invalid output.
 */
async function runQuery(line: string, timeoutMs: number): Promise<string> {
  using stop = new StopRequestListener();
  const env = process.env as Record<string, string>;
  const options = { env, ownGroup: true, descriptors: [], hangUpIgnored: false, readsNothing: true, isRead: true };
  const child = await spawnChild(["/bin/sh", "-c", line], options);
  if (child.kind !== "started" || child.output === null) {
    throw itemQueryError(line, "message" in child ? child.message : "it could not be started");
  }
  const { pid, output } = child;
  using deadline = deadlineAfter(systemClock(), timeoutMs, {
    signal: stop.signal,
    reason: () => itemQueryError(line, itemQueryTimeoutMessage(timeoutMs)),
  });
  try {
    const text = await rejectOnAbort(readPoolItemText(output, "the output of --query"), deadline.signal);
    const end = await rejectOnAbort(child.ended, deadline.signal);
    if (end.kind === "exited" && end.code === 0) return text;
    const how = end.kind === "exited"
      ? `it exited with ${end.code}`
      : end.kind === "signaled"
      ? `it was ended by ${end.signal}`
      : end.why;
    throw itemQueryError(line, how);
  } catch (thrown) {
    sendSignal(-pid, "SIGKILL"); // the whole process group
    throw thrown;
  }
}

/** Returns the totals of the items, for people. Free items are known only if the call named the items. */
function poolTotalsText(
  items: readonly Pick<PoolItemStatus, "state">[],
  { isNamed }: { readonly isNamed: boolean },
): string {
  const counts = countPoolItems(items);
  const free = isNamed ? `, ${counts.free} free` : "";
  const total = countWithNoun(items.length, "item");
  return `${total}: ${counts.done} done, ${counts.failed} failed, ${counts.running} running${free}`;
}

/** Prints the totals and the table on stdout, and everything else on stderr. `nowMs` is the wall clock's time. */
function printStatus(
  { component, componentHolder, items, conflictingRun }: PoolStatus,
  { io, quiet, nowMs, templates, isNamed }: {
    readonly io: Io;
    readonly quiet: boolean;
    readonly nowMs: number;
    readonly templates: PoolPathTemplates;
    readonly isNamed: boolean;
  },
): void {
  if (conflictingRun !== null && !quiet) {
    const difference = printable(
      describePoolPathDifferences(templates, conflictingRun.templates).join(", ") || "its root differs",
    );
    const who = nameOfHolder(conflictingRun.info);
    io.err(`baton: ${who} runs pool "${component}" with other lock paths, so its items are not shown: ${difference}\n`);
  }
  if (componentHolder !== null && !quiet) {
    const { sinceMs } = componentHolder;
    const since = sinceMs === 0 ? "" : ` (for ${formatDuration(Math.max(0, nowMs - sinceMs))})`;
    // The holder may also be a program that does not choose items; the stored data does not distinguish the two.
    io.err(
      `baton: ${
        nameOfHolder(componentHolder)
      } holds the lock of pool "${component}"${since} and may be choosing items\n`,
    );
  }
  if (items.length > 0) {
    io.out(`${poolTotalsText(items, { isNamed })}\n`);
    printTable(io, [
      tableHeadCells(["ITEM", "STATE", "SINCE", "BY", "DETAIL"]),
      ...items.map((item) => itemRowOf(item, nowMs)),
    ]);
  } else if (!quiet) {
    io.err(`baton: no item of pool "${component}" is running, and no results are stored\n`);
  }
}

function itemRowOf({ item, state, holder, lastResult }: PoolItemStatus, nowMs: number): string[] {
  const since = holder?.sinceMs ?? lastResult?.atMs ?? 0;
  const age = since === 0 ? "-" : formatDuration(Math.max(0, nowMs - since));
  if (holder !== null) return [item, state, age, nameOfHolder(holder), `token ${holder.fencingToken}`];
  return [item, state, age, lastResult?.by ?? "-", lastResult?.what ?? ""];
}

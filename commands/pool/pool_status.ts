/** `baton pool status`: what is free, who works on what, and how items have ended. */
import type { Io } from "../../src/terminal/io.ts";
import { printTable } from "../../src/terminal/table.ts";
import { nameOfHolder } from "../../src/coordination/holder_info.ts";
import type { HolderStatus } from "../../src/coordination/lock/lock_status.ts";
import { type PoolItemStatus, type PoolStatus, poolStatus } from "../../src/coordination/pool/read_pool_status.ts";
import type { PoolTemplates } from "../../src/coordination/pool/pool_path.ts";
import { differingPaths } from "../../src/coordination/pool/pool_terms.ts";
import { printable } from "../../src/support/text.ts";
import { formatDuration } from "../../src/support/duration.ts";
import type { Call } from "../command.ts";
import { connected } from "../coordination/connected.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import type { poolCommandSettings, PoolStatusOptions } from "./pool_options.ts";
import { namedItems } from "./pool_query.ts";

export async function showPoolStatus(
  options: PoolStatusOptions,
  call: Call<typeof poolCommandSettings>,
): Promise<ExitCode> {
  const { values, io } = call;
  const { component, path } = options;
  const named = await namedItems(options, { path, queryTimeoutMs: values.queryTimeout });
  const status = await connected(call, (zk) => poolStatus(zk, component, { path, named }));
  if (values.json) io.out(JSON.stringify(toJson(status)) + "\n");
  else tell(status, { io, quiet: values.quiet, nowMs: Date.now(), templates: path.templates });
  return exitCodes.SUCCESS;
}

/** For people: the table alone on stdout. `nowMs` is the wall clock. */
function tell(
  { component, chooser, items, elsewhere }: PoolStatus,
  { io, quiet, nowMs, templates }: {
    readonly io: Io;
    readonly quiet: boolean;
    readonly nowMs: number;
    readonly templates: PoolTemplates;
  },
): void {
  if (elsewhere !== null && !quiet) {
    const what = printable(differingPaths(templates, elsewhere.templates).join(", ") || "its root is another");
    io.err(
      `baton: ${
        nameOfHolder(elsewhere.info)
      } runs "${component}" with its locks elsewhere, and what it works on is not ` +
        `shown: ${what}\n`,
    );
  }
  if (chooser !== null && !quiet) {
    const since = chooser.sinceMs === 0 ? "" : ` (for ${formatDuration(Math.max(0, nowMs - chooser.sinceMs))})`;
    // What is stored does not tell a pool from somebody who has locked its component to keep pools away.
    const what = `holds the lock of "${component}"${since}, as a pool does that lists and chooses items`;
    io.err(`baton: ${nameOfHolder(chooser)} ${what}\n`);
  }
  if (items.length > 0) {
    printTable(io, [["ITEM", "STATE", "SINCE", "WHO", "HOW"], ...items.map((item) => rowOf(item, nowMs))]);
  } else if (!quiet) {
    io.err(`baton: no item of "${component}" runs, and no end of one is remembered\n`);
  }
}

function rowOf({ item, state, holder, ended }: PoolItemStatus, nowMs: number): string[] {
  const since = holder?.sinceMs ?? ended?.atMs ?? 0;
  const age = since === 0 ? "-" : formatDuration(Math.max(0, nowMs - since));
  if (holder !== null) return [item, state, age, nameOfHolder(holder), `token ${holder.fencingToken}`];
  return [item, state, age, ended?.by ?? "-", ended?.what ?? ""];
}

/** Version 1: fields may be added. 64-bit numbers are decimal texts. */
function toJson({ component, chooser, items, elsewhere }: PoolStatus) {
  const counts = { free: 0, running: 0, done: 0, failed: 0 };
  for (const { state } of items) counts[state]++;
  return {
    version: 1,
    component,
    chooser: chooser === null ? null : holderFields(chooser),
    elsewhere: elsewhere === null ? null : {
      host: elsewhere.info.host,
      pid: elsewhere.info.pid,
      user: elsewhere.info.user,
      command: elsewhere.info.argv0,
      item_path: elsewhere.templates.item,
      component_path: elsewhere.templates.component,
    },
    counts,
    items: items.map(({ item, state, holder, ended }) => ({
      item,
      state,
      holder: holder === null ? null : holderFields(holder),
      ended: ended === null ? null : {
        result: ended.result,
        what: ended.what,
        by: ended.by,
        at: new Date(ended.atMs).toISOString(),
        until: new Date(ended.untilMs).toISOString(),
      },
    })),
  };
}

function holderFields(holder: HolderStatus) {
  return {
    id: holder.holderId,
    host: holder.host,
    pid: holder.pid,
    user: holder.user,
    command: holder.argv0,
    since: holder.sinceMs === 0 ? null : new Date(holder.sinceMs).toISOString(),
    fencing_token: holder.fencingToken.toString(),
  };
}

/** `baton pool status`: what is free, who works on what, and how items have ended. */
import { printTable } from "../../src/cli/table.ts";
import { nameOfHolder } from "../../src/recipes/holder_info.ts";
import type { HolderStatus } from "../../src/recipes/lock/lock_status.ts";
import { type PoolItemStatus, type PoolStatus, poolStatus } from "../../src/recipes/pool/pool_status.ts";
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
  const named = await namedItems(options, values.queryTimeout);
  const status = await connected(call, (zk) => poolStatus(zk, component, { path, named }));
  if (values.json) io.out(JSON.stringify(toJson(status)) + "\n");
  else if (status.items.length > 0) {
    const nowMs = Date.now();
    printTable(io, [["ITEM", "STATE", "SINCE", "WHO", "HOW"], ...status.items.map((item) => rowOf(item, nowMs))]);
  } else if (!values.quiet) {
    io.err(`baton: nothing of "${component}" runs, and no end of an item is remembered\n`);
  }
  return exitCodes.SUCCESS;
}

/** For people. `nowMs` is the wall clock. */
function rowOf({ item, state, holder, ended }: PoolItemStatus, nowMs: number): string[] {
  const since = holder?.sinceMs ?? ended?.atMs ?? 0;
  const age = since === 0 ? "-" : formatDuration(Math.max(0, nowMs - since));
  if (holder !== null) return [item, state, age, nameOfHolder(holder), `token ${holder.fencingToken}`];
  return [item, state, age, ended?.by ?? "-", ended?.what ?? ""];
}

/** Version 1: fields may be added. 64-bit numbers are decimal texts. */
function toJson({ component, chooser, items }: PoolStatus) {
  const counts = { free: 0, running: 0, done: 0, failed: 0 };
  for (const { state } of items) counts[state]++;
  return {
    version: 1,
    component,
    chooser: chooser === null ? null : holderFields(chooser),
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

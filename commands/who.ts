/** `baton who`: who holds a lock and who waits for it. */
import { printTable } from "../src/cli/table.ts";
import { setting, type SettingTable } from "../src/config/setting.ts";
import { connectionSettings } from "../src/config/settings.ts";
import { toggle } from "../src/config/value_types.ts";
import { nameOfHolder } from "../src/recipes/holder_info.ts";
import { type HolderStatus, type LockStatus, lockStatus, type WaiterStatus } from "../src/recipes/lock_status.ts";
import { formatDuration } from "../src/support/duration.ts";
import { defineCommand } from "./command.ts";
import { connected } from "./connected.ts";
import { exitCodes } from "./exit_codes.ts";
import { onlyName } from "./only_name.ts";

const settings = {
  json: setting(toggle(), { flag: "--json", help: "print one JSON object", default: false }),
  ...connectionSettings,
} satisfies SettingTable;

export const whoCommand = defineCommand({
  name: "who",
  summary: "say who holds a lock and who waits for it",
  usage: "NAME [options]",
  details: [
    "One line for each holder and each waiter, in their order: since when, how, the holder's id as baton break takes it, " +
    "and the reason it gave. Exits with 1 when nobody holds it.",
  ],
  examples: [
    ["baton who nightly", "holders and waiters as a table"],
    ["baton who nightly --json", "the same for programs"],
    ["baton who -q nightly >/dev/null; [ $? -eq 1 ] && echo free", "is it free? 69, say, would mean that nobody knows"],
  ],
  settings,
  completes: "locks",
  runsNothing: true,
  async run(call) {
    const { values, io } = call;
    const name = onlyName("who", call.names);
    const status = await connected(call, (zk) => lockStatus(zk, name, { root: values.root }));
    if (values.json) io.out(JSON.stringify(toJson(status)) + "\n");
    else printTable(io, rowsOf(status, Date.now()));
    if (status.holders.length > 0) return exitCodes.SUCCESS;
    if (!values.quiet && !values.json) io.err(`baton: nobody holds "${name}"\n`);
    return exitCodes.NEGATIVE;
  },
});

/** For people. `nowMs` is the wall clock. */
function rowsOf({ holders, waiters }: LockStatus, nowMs: number): string[][] {
  if (holders.length + waiters.length === 0) return [];
  const row = (state: string, how: string, one: HolderStatus | WaiterStatus) => [
    state,
    nameOfHolder(one),
    one.sinceMs === 0 ? "-" : formatDuration(Math.max(0, nowMs - one.sinceMs)),
    how,
    one.holderId,
    one.revoke === null ? one.reason : `${one.reason} (asked to give it back)`.trim(),
  ];
  return [
    ["STATE", "WHO", "FOR", "HOW", "ID", "REASON"],
    ...holders.map((holder) =>
      row("holds", holder.slot === null ? holder.mode : `${holder.mode}, slot ${holder.slot}`, holder)
    ),
    ...waiters.map((waiter) => row("waits", `${waiter.mode}, priority ${waiter.priority}`, waiter)),
  ];
}

/** Version 1: fields may be added. 64-bit numbers are decimal texts. */
function toJson({ name, path, limit, holders, waiters }: LockStatus) {
  const common = (one: HolderStatus | WaiterStatus) => ({
    id: one.holderId,
    mode: one.mode,
    host: one.host,
    pid: one.pid,
    user: one.user,
    command: one.argv0,
    reason: one.reason,
    since: one.sinceMs === 0 ? null : new Date(one.sinceMs).toISOString(),
    session_id: one.sessionId.toString(),
    session_timeout_ms: one.sessionTimeoutMs,
    revoke: one.revoke,
  });
  return {
    version: 1,
    name,
    path,
    limit,
    holders: holders.map((holder) => ({
      ...common(holder),
      slot: holder.slot,
      fencing_token: holder.fencingToken.toString(),
    })),
    waiters: waiters.map((waiter) => ({ ...common(waiter), place: waiter.place, priority: waiter.priority })),
  };
}

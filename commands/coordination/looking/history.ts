/** `baton history`: shows how the holds of a lock, the terms of an election or the runs of a pool ended. */
import { printJson } from "../../../src/base/terminal/io.ts";
import { printTable } from "../../../src/base/terminal/table.ts";
import { flagSetting, type SettingTable, type SettingValues, toggleSetting } from "../../../src/base/config/setting.ts";
import { connectionSettings } from "../../../src/coordination/settings/coordination_settings.ts";
import { choiceType, durationType } from "../../../src/base/config/value_types.ts";
import { findObjectKinds } from "../../../src/coordination/admin/object_details.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { deleteLockHistory } from "../../../src/coordination/history/clear_history.ts";
import { type HistoryKind, historyKinds } from "../../../src/coordination/history/history_log.ts";
import { historyRecordTime } from "../../../src/coordination/history/history_record.ts";
import { readHistoryReport } from "../../../src/coordination/history/history_report.ts";
import { readTickSchedules } from "../../../src/coordination/tick/tick_report.ts";
import { BatonError } from "../../../src/base/errors.ts";
import { type CommandCall, defineCommand } from "../../command.ts";
import { runInCoordinationSession } from "../../coordination_session.ts";
import { type ExitCode, exitCodes } from "../../../src/base/exit_codes.ts";
import type { HistoryJson } from "../../json_shapes/lock_shapes.ts";
import { historyJson, historyLines, historyTableRows, type ShownHistory, unknownZoneSentence } from "./history_view.ts";
import { describeOtherKindsWithName, requireOneName } from "../../name_arguments.ts";
import { printable } from "../../../src/base/support/text.ts";

const settings = {
  kind: flagSetting("--kind", choiceType(historyKinds), {
    help: "kind of the object; a lock and an election may have the same name",
    unset: "the first kind that has a history; lock for forget",
  }),
  since: flagSetting("--since", durationType(), {
    help: "only records of this last time, such as 2d",
    unset: "all that are stored",
  }),
  json: toggleSetting("--json", { help: "print one JSON object" }),
  ...connectionSettings,
} satisfies SettingTable;

export const historyCommand = defineCommand({
  name: "history",
  summary: "show how the holds of a lock ended, and which ticks were run, skipped, missed or lost",
  usage: "NAME [options] | forget NAME [options]",
  details: [
    "Prints one line for each recorded hold of a lock or an election (baton lock, hold and elect with --history, or " +
    "history.enabled in the configuration), and for each attempt of a tick. The oldest comes first. Then it " +
    "prints the holds that continue, the number of calls that found the lock busy, and the next tick " +
    "and try of each schedule. Times are UTC. Exits with 1 if there is nothing.",
    "For a pool it prints one line for each call of baton pool --history that ran items. Messages: " +
    "baton retry-processor show and explain.",
    "done: exit code 0. failed: another one, or --max-hold. stopped: another user broke the lock, or the " +
    "service was stopped. lost: the host died or lost the servers, so the outcome is unknown. missed: no " +
    "host took a tick in time. skipped: the lock was busy.",
    "The servers keep up to 128 records of a name (history.keep), and clear a history that was not written " +
    "for 30 days (history.max_age) if no schedule uses it. forget NAME deletes it with its counters; " +
    "schedules stay.",
  ],
  examples: [
    ["baton history backup", "the last runs of the lock backup"],
    ["baton history backup --since 2d --json", "the last two days, for programs"],
    ["baton history echo", "the terms of the leaders of an election"],
    ["baton history --kind pool import", "the runs of a pool that has the name of a lock"],
    ["baton history forget backup", "delete the records"],
  ],
  settings,
  completes: "locks",
  completesFirst: { forget: [] },
  runsNothing: true,
  async run(call) {
    const [first, ...others] = call.names;
    return first === "forget" && others.length > 0 ? await forget(call, others) : await show(call);
  },
});

type Values = SettingValues<typeof settings>;

async function show(call: CommandCall<typeof settings>): Promise<ExitCode> {
  const { values, io } = call;
  const { root } = values;
  const name = requireOneName("history", call.names, values.kind);
  const { shown, others } = await runInCoordinationSession(call, async (zk) => {
    const shown = await readShownHistory(zk, name, values);
    const isTold = isEmptyHistory(shown) && values.kind === undefined && !values.json && !values.quiet;
    const used = isTold ? await findObjectKinds(zk, name, root) : [];
    return { shown, others: describeOtherKindsWithName(used, { kind: "lock", name }) };
  });
  const { records, schedules } = shown;
  const isEmpty = isEmptyHistory(shown);
  for (const schedule of values.json && !values.quiet ? schedules : []) {
    const sentence = unknownZoneSentence(schedule);
    if (sentence !== null) io.err(`baton: warning: ${sentence}\n`);
  }
  if (values.json) printJson<HistoryJson>(io, historyJson(shown, Date.now()));
  else {
    printTable(io, historyTableRows(records));
    for (const line of historyLines(shown, Date.now())) io.out(`${printable(line)}\n`);
    if (isEmpty && !values.quiet) io.err(`baton: ${emptySentence(name, values)}${others}\n`);
  }
  return isEmpty ? exitCodes.FALSE : exitCodes.SUCCESS;
}

/** Reads the history of the kind that is wanted; by default, the first one that is not empty. */
async function readShownHistory(zk: ZooKeeper, name: string, { kind, root, since }: Values): Promise<ShownHistory> {
  const fromMs = since === undefined ? -Infinity : Date.now() - since;
  const read = async (kind: HistoryKind): Promise<ShownHistory> => {
    const schedules = kind === "lock" ? await readTickSchedules(zk, name, root) : [];
    const report = await readHistoryReport(zk, name, { kind, root });
    const records = report.records.filter((record) => historyRecordTime(record) >= fromMs);
    return { ...report, name, kind, schedules, records };
  };
  if (kind !== undefined) return await read(kind);
  const ofLock = await read("lock");
  if (!isEmptyHistory(ofLock)) return ofLock;
  const others = await Promise.all(historyKinds.filter((each) => each !== "lock").map(read));
  return others.find((history) => !isEmptyHistory(history)) ?? ofLock;
}

function isEmptyHistory({ records, schedules, running, refusals }: ShownHistory): boolean {
  return records.length + schedules.length + running.length === 0 && refusals === null;
}

function emptySentence(name: string, { kind, since }: Values): string {
  const what = kind === undefined ? `"${name}"` : `${kind} "${name}"`;
  if (since !== undefined) return `${what} has no history of this time`;
  const commands = { lock: "baton lock", election: "baton elect", pool: "baton pool" };
  const command = kind === undefined ? "baton lock, elect and pool record" : `${commands[kind]} records`;
  return `${what} has no history: ${command} it only with --history`;
}

async function forget(call: CommandCall<typeof settings>, names: readonly string[]): Promise<ExitCode> {
  const { values: { kind = "lock", root, quiet, since, json }, io } = call;
  const name = requireOneName("history forget", names, kind);
  if (json || since !== undefined) {
    throw new BatonError("USAGE", "baton history forget deletes the whole history: leave out --since and --json");
  }
  const wasThere = await runInCoordinationSession(call, (zk) => deleteLockHistory(zk, name, { kind, root }));
  if (!wasThere && !quiet) io.err(`baton: ${kind} "${name}" has no history\n`);
  return wasThere ? exitCodes.SUCCESS : exitCodes.FALSE;
}

/** `baton history`: shows how the holds of a lock, the terms of an election or the runs of a pool ended. */
import { printJson } from "../../../src/base/terminal/io.ts";
import { printTable } from "../../../src/base/terminal/table.ts";
import { flagSetting, type SettingTable, type SettingValues, toggleSetting } from "../../../src/base/config/setting.ts";
import { connectionSettings } from "../../../src/coordination/settings/coordination_settings.ts";
import { choiceType, durationType } from "../../../src/base/config/value_types.ts";
import { deleteLockHistory } from "../../../src/coordination/history/clear_history.ts";
import { historyKinds } from "../../../src/coordination/history/history_log.ts";
import { historyRecordTime } from "../../../src/coordination/history/history_record.ts";
import { readHistoryReport } from "../../../src/coordination/history/history_report.ts";
import { readTickSchedules } from "../../../src/coordination/tick/tick_report.ts";
import { BatonError } from "../../../src/base/errors.ts";
import { type CommandCall, defineCommand } from "../../command.ts";
import { runInCoordinationSession } from "../../coordination_session.ts";
import { type ExitCode, exitCodes } from "../../../src/base/exit_codes.ts";
import type { HistoryJson } from "../../json_shapes/lock_shapes.ts";
import { historyJson, historyLines, historyTableRows, type ShownHistory, unknownZoneSentence } from "./history_view.ts";
import { requireOneName } from "../../name_arguments.ts";
import { printable } from "../../../src/base/support/text.ts";

const settings = {
  kind: flagSetting("--kind", choiceType(historyKinds), {
    help: "kind of the object; a lock and an election may have the same name",
    default: "lock",
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
    "Prints one line for each recorded hold of a lock (baton lock, hold and elect with --history, or " +
    "history.enabled in the configuration), and for each attempt of a tick. The oldest comes first. Then it " +
    "prints the holds that continue, the number of calls that found the lock busy, and the next tick of " +
    "each schedule. Times are UTC. Exits with 1 if there is nothing.",
    "With --kind pool it prints one line for each call of baton pool --history that ran items. Messages: " +
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
    ["baton history --kind election echo", "the terms of the leaders"],
    ["baton history --kind pool import", "the runs of a pool"],
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
  const { kind, root, since } = values;
  const name = requireOneName("history", call.names, kind);
  const { schedules, report } = await runInCoordinationSession(call, async (zk) => ({
    schedules: kind === "lock" ? await readTickSchedules(zk, name, root) : [],
    report: await readHistoryReport(zk, name, { kind, root }),
  }));
  const fromMs = since === undefined ? -Infinity : Date.now() - since;
  const records = report.records.filter((record) => historyRecordTime(record) >= fromMs);
  const shown: ShownHistory = { ...report, name, kind, schedules, records };
  const { running, refusals } = shown;
  const isEmpty = records.length + schedules.length + running.length === 0 && refusals === null;
  for (const schedule of values.json && !values.quiet ? schedules : []) {
    const sentence = unknownZoneSentence(schedule);
    if (sentence !== null) io.err(`baton: warning: ${sentence}\n`);
  }
  if (values.json) printJson<HistoryJson>(io, historyJson(shown, Date.now()));
  else {
    printTable(io, historyTableRows(records));
    for (const line of historyLines(shown, Date.now())) io.out(`${printable(line)}\n`);
    if (isEmpty && !values.quiet) io.err(`baton: ${kind} "${name}" has no history${hintFor(values)}\n`);
  }
  return isEmpty ? exitCodes.FALSE : exitCodes.SUCCESS;
}

function hintFor({ kind, since }: Values): string {
  if (since !== undefined) return " of this time";
  const command =
    { lock: "baton lock --history", election: "baton elect --history", pool: "baton pool --history" }[kind];
  return `; ${command} records it`;
}

async function forget(call: CommandCall<typeof settings>, names: readonly string[]): Promise<ExitCode> {
  const { values: { kind, root, quiet, since, json }, io } = call;
  const name = requireOneName("history forget", names, kind);
  if (json || since !== undefined) {
    throw new BatonError("USAGE", "baton history forget deletes the whole history: leave out --since and --json");
  }
  const wasThere = await runInCoordinationSession(call, (zk) => deleteLockHistory(zk, name, { kind, root }));
  if (!wasThere && !quiet) io.err(`baton: ${kind} "${name}" has no history\n`);
  return wasThere ? exitCodes.SUCCESS : exitCodes.FALSE;
}

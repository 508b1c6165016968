/** Defines `baton retry-processor explain`, which prints when a policy would try a message. */
import { printTable, tableHeadCells } from "../../src/base/terminal/table.ts";
import { retryPolicySettings } from "../../src/retry/settings/retry_settings.ts";
import type { SettingTable } from "../../src/base/config/setting.ts";
import { BatonError } from "../../src/base/errors.ts";
import { computeSchedule, type RetrySchedule } from "../../src/retry/queue/retry_policy.ts";
import { countWithNoun } from "../../src/base/support/text.ts";
import { formatDuration } from "../../src/base/support/duration.ts";
import { type CommandCall, defineCommand } from "../command.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import type { RetryExplainJson } from "../json_shapes/retry_shapes.ts";
import { printJson } from "../../src/base/terminal/io.ts";
import { jsonFlag } from "./inspect_options.ts";
import { readRetryPolicy } from "../../src/retry/processor/retry_rules.ts";

const explainSettings = { ...retryPolicySettings, json: jsonFlag } satisfies SettingTable;

/** The most tries that are printed. */
const linesMax = 100;

export const retryExplainCommand = defineCommand({
  name: "retry-processor explain",
  summary: "print the schedule of a policy",
  usage: "[options]",
  details: [
    "Prints when each try starts: the earliest and the latest time with jitter, not counting the duration of the " +
    "tries. Reads the same configuration as call and run.",
  ],
  examples: [
    ["baton retry-processor explain --max-retries 5 --backoff exponential", "3 s, 6 s, 12 s …"],
    ["baton retry-processor explain --delays 1s,1m,1h --jitter equal", "a list with jitter"],
  ],
  settings: explainSettings,
  runsNothing: true,
  run: explain,
});

// deno-lint-ignore require-await -- commands are asynchronous
async function explain({ values, names, sources, io }: CommandCall<typeof explainSettings>): Promise<ExitCode> {
  if (names.length > 0) throw new BatonError("USAGE", `unexpected argument "${names[0]}"; explain takes options only`);
  const schedule = computeSchedule(readRetryPolicy(values, sources), linesMax);
  if (values.json) {
    printJson(io, scheduleJson(schedule));
    return exitCodes.SUCCESS;
  }
  const hasJitter = schedule.delays.some(({ minMs, maxMs }) => minMs !== maxMs);
  let sinceMinMs = 0;
  let sinceMaxMs = 0;
  const rows = schedule.delays.map(({ minMs, maxMs }, at) => {
    sinceMinMs += minMs;
    sinceMaxMs += maxMs;
    const span = (least: number, most: number) =>
      least === most ? formatDuration(least) : `${formatDuration(least)} … ${formatDuration(most)}`;
    return [String(at + 1), at === 0 ? "immediately" : span(minMs, maxMs), span(sinceMinMs, sinceMaxMs)];
  });
  printTable(io, [
    tableHeadCells(["TRY", "AFTER THE PREVIOUS", hasJitter ? "AFTER THE FIRST, MIN … MAX" : "AFTER THE FIRST"]),
    ...rows,
  ]);
  if (schedule.triesMax > schedule.delays.length) io.out(`… up to try ${schedule.triesMax}\n`);
  io.out(
    `then it is a dead letter: after ${countWithNoun(schedule.triesMax, "try", "tries")}, ${
      formatDuration(schedule.maxTotalMs)
    } after the first at the latest\n`,
  );
  return exitCodes.SUCCESS;
}

function scheduleJson({ delays, triesMax, minTotalMs, maxTotalMs }: RetrySchedule): RetryExplainJson {
  const tries = delays.map(({ minMs, maxMs }, at) => ({ try: at + 1, min_delay_ms: minMs, max_delay_ms: maxMs }));
  return { version: 1, tries, max_tries: triesMax, min_total_ms: minTotalMs, max_total_ms: maxTotalMs };
}

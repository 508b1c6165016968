/** `baton retry-processor explain`: prints the schedule of a policy before it is used. */
import { headCells, printTable } from "../../src/base/terminal/table.ts";
import { retryPolicySettings } from "../../src/retry/settings/retry_settings.ts";
import type { SettingTable } from "../../src/base/config/setting.ts";
import { BatonError } from "../../src/base/errors.ts";
import { decideNextTry, type RetryPolicy } from "../../src/retry/queue/retry_policy.ts";
import { countWithNoun } from "../../src/base/support/text.ts";
import { formatDuration } from "../../src/base/support/duration.ts";
import { type Call, defineCommand } from "../command.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import type { RetryExplainJson } from "../json_shapes/retry_shapes.ts";
import { printJson } from "../../src/base/terminal/io.ts";
import { jsonFlag } from "./inspect_options.ts";
import { readRetryPolicy } from "../../src/retry/processor/retry_rules.ts";

const explainSettings = { ...retryPolicySettings, json: jsonFlag } satisfies SettingTable;

/** Maximum number of printed tries. */
const linesMax = 100;
/** Replaces the random number by its maximum; it is always below 1. */
const maximalRandom = () => 1 - 2 ** -53;

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
async function explain({ values, names, sources, io }: Call<typeof explainSettings>): Promise<ExitCode> {
  if (names.length > 0) throw new BatonError("USAGE", `unexpected argument "${names[0]}"; explain takes options only`);
  const result = computeSchedule(readRetryPolicy(values, sources));
  if (values.json) {
    printJson(io, result);
    return exitCodes.SUCCESS;
  }
  const hasJitter = result.tries.some((one) => one.min_delay_ms !== one.max_delay_ms);
  let [minMs, maxMs] = [0, 0];
  const rows = result.tries.map(({ try: number, min_delay_ms: minDelayMs, max_delay_ms: maxDelayMs }) => {
    [minMs, maxMs] = [minMs + minDelayMs, maxMs + maxDelayMs];
    const span = (least: number, most: number) =>
      least === most ? formatDuration(least) : `${formatDuration(least)} … ${formatDuration(most)}`;
    return [String(number), number === 1 ? "immediately" : span(minDelayMs, maxDelayMs), span(minMs, maxMs)];
  });
  printTable(io, [
    headCells(["TRY", "AFTER THE PREVIOUS", hasJitter ? "AFTER THE FIRST, MIN … MAX" : "AFTER THE FIRST"]),
    ...rows,
  ]);
  if (result.max_tries > result.tries.length) io.out(`… up to try ${result.max_tries}\n`);
  io.out(
    `then it is a dead letter: after ${countWithNoun(result.max_tries, "try", "tries")}, ${
      formatDuration(result.max_total_ms)
    } after the first at the latest\n`,
  );
  return exitCodes.SUCCESS;
}

/** Computes the schedule, without the duration of the tries. Pure. */
export function computeSchedule(policy: RetryPolicy): RetryExplainJson {
  const tries: RetryExplainJson["tries"] = [{ try: 1, min_delay_ms: 0, max_delay_ms: 0 }];
  let [minMs, maxMs, count] = [0, 0, 1];
  for (;; count++) {
    const next = (nowMs: number, dice: () => number) =>
      decideNextTry(policy, { tries: count, sinceMs: 0, nowMs, retryAfterMs: null }, dice);
    const [least, last] = [next(minMs, () => 0), next(maxMs, maximalRandom)];
    // The message with the shortest delays gets furthest within --max-elapsed.
    if (least.kind === "never") break;
    const upTo = last.kind === "at" ? last.atMs - maxMs : least.atMs - minMs;
    if (count < linesMax) tries.push({ try: count + 1, min_delay_ms: least.atMs - minMs, max_delay_ms: upTo });
    [minMs, maxMs] = [least.atMs, Math.min(maxMs + upTo, policy.maxElapsedMs ?? Infinity)];
  }
  return { version: 1, tries, max_tries: count, min_total_ms: minMs, max_total_ms: maxMs };
}

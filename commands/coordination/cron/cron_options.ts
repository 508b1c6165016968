/** The settings of `baton cron`, and which operation uses which of them. Pure. */
import { flagSetting, type SettingTable, toggleSetting } from "../../../src/base/config/setting.ts";
import { logSettings } from "../../../src/coordination/settings/command_settings.ts";
import { connectionSettings, historySettings } from "../../../src/coordination/settings/coordination_settings.ts";
import { durationType, integerType, type SettingValueType, textType } from "../../../src/base/config/value_types.ts";
import { BatonError } from "../../../src/base/errors.ts";
import { isUnixTimeMs } from "../../../src/base/support/instant.ts";
import { type CommandCall, findGivenFlag } from "../../command.ts";
import { leasedCommandSettings } from "../../../src/coordination/job/leased_command_flags.ts";

const timezone = flagSetting("--timezone", textType("zone"), {
  help: "time zone of lines without CRON_TZ, such as Europe/Berlin; the same on all hosts",
  unset: "CRON_TZ, TZ, or the host's",
});

const nextSettings = {
  number: flagSetting("-n, --number", integerType("count", { min: 1, max: 1000 }), {
    help: "for next: print this many ticks of each job",
    default: 1,
  }),
  from: flagSetting("--from", instantTextType(), { help: "for next: print ticks after this time", unset: "now" }),
} satisfies SettingTable;

const { historyKeep, historyMaxAge } = historySettings;

const json = toggleSetting("--json", { help: "print one JSON object" });

const serviceSettings = {
  jobs: flagSetting("-j, --jobs", integerType("count", { min: 1, max: 1000 }), {
    help: "run at most this many jobs on this host at a time; other hosts take the rest",
    default: 8,
  }),
  drain: flagSetting("--drain", durationType(), {
    help: "on the first TERM or INT, take no further ticks and let running jobs finish for this long; then stop them",
    default: 30_000,
  }),
  splay: flagSetting("--splay", durationType({ maxMs: 60_000 }), {
    basic: false,
    help: "stagger the hosts' requests for a tick over this time, in a new order for each tick",
    default: 1000,
  }),
  skew: flagSetting("--skew", durationType({ minMs: 100, maxMs: 3_600_000 }), {
    basic: false,
    help: "take no ticks if this host's clock differs from the servers' by more than this",
    default: 30_000,
  }),
  outputDir: flagSetting("--output-dir", textType("folder"), {
    group: "output",
    help: "write the output of each run to its own files of 10 MiB in this folder, instead of to stderr",
  }),
  outputKeep: flagSetting("--output-keep", integerType("count", { min: 1, max: 100_000 }), {
    group: "output",
    help: "with --output-dir: number of files of a job that are kept, the newest ones; 1440 keep a day of a job that " +
      "runs each minute",
    default: 30,
  }),
  ...logSettings,
  ...leasedCommandSettings,
} satisfies SettingTable;

export const cronSettings = {
  ...serviceSettings,
  timezone,
  ...nextSettings,
  json,
  historyKeep,
  historyMaxAge,
  ...connectionSettings,
} satisfies SettingTable;

/** The type of a setting that is a time with an offset from UTC. The value is in Unix milliseconds. */
function instantTextType(): SettingValueType<number> {
  return {
    placeholder: "time",
    fileType: "string",
    parse(written) {
      const ms = /^\d{4}-\d\d-\d\dT\d\d:\d\d\S*(Z|[+-]\d\d:\d\d)$/.test(written) ? Date.parse(written) : NaN;
      if (isUnixTimeMs(ms)) return ms;
      throw new BatonError("USAGE", `"${written}" is not a time with its offset, such as 2026-11-24T03:00Z`);
    },
    format: (value) => new Date(value).toISOString(),
  };
}

/** The settings that each operation rejects. */
export const cronCommandForms = {
  check: { refuses: { ...serviceSettings, ...nextSettings, ...connectionSettings }, runsNothing: true },
  next: { refuses: { ...serviceSettings, ...connectionSettings }, runsNothing: true },
  reset: { refuses: { ...serviceSettings, timezone, ...nextSettings }, runsNothing: true },
  forget: { refuses: { ...serviceSettings, timezone, ...nextSettings }, runsNothing: true },
} as const;

export type CronSettingValues = CommandCall<typeof cronSettings>["values"];

export type CronOperation = keyof typeof cronCommandForms;
const operations = ["check", "next", "reset", "forget"] as const satisfies readonly CronOperation[];

/** Returns the operation and its argument. The operation is `run` if there is only the name of a file. Throws USAGE. */
export function readCronOperation(
  { names, sources }: Pick<CommandCall<typeof cronSettings>, "names" | "sources">,
): { readonly operation: CronOperation | "run"; readonly subject: string } {
  const [first, ...others] = names;
  const operation = operations.find((one) => one === first) ?? "run";
  const [subject, ...more] = operation === "run" ? names : others;
  const word = operation === "run" ? "" : ` ${operation}`;
  const what = operation === "reset" || operation === "forget" ? "NAME" : "FILE";
  if (subject === undefined || more.length > 0) {
    const given = more.length > 0 ? `"${names.join(" ")}" is given` : "none is given";
    throw new BatonError(
      "USAGE",
      `baton cron${word} needs one ${what.toLowerCase()}, and ${given}, as in: baton cron${word} ${what}`,
    );
  }
  const refused = operation === "run" ? { ...nextSettings, json } : cronCommandForms[operation].refuses;
  const wrongFlag = findGivenFlag(refused, sources.flags);
  if (wrongFlag !== null) throw new BatonError("USAGE", `baton cron${word || " FILE"} does not use ${wrongFlag}`);
  return { operation, subject };
}

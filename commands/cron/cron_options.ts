/** The options of `baton cron`: settings, and which of them belong to which operation. Pure. */
import { flag, type SettingTable, toggle } from "../../src/config/setting.ts";
import { connectionSettings } from "../../src/config/coordination_settings.ts";
import { integerType, textType, type ValueType } from "../../src/config/value_types.ts";
import { BatonError } from "../../src/errors.ts";
import { isInstant } from "../../src/support/instant.ts";
import { type Call, givenFlag } from "../command.ts";

const timezone = flag("--timezone", textType("zone"), {
  help: "time zone of lines without CRON_TZ, such as Europe/Berlin; the same on all hosts",
  unset: "CRON_TZ, TZ, or the host's",
});

/** Settings of `next` only. */
const nextSettings = {
  number: flag("-n, --number", integerType("count", { min: 1, max: 1000 }), {
    help: "for next: print this many ticks of each job",
    default: 1,
  }),
  from: flag("--from", instantTextType(), { help: "for next: print ticks after this time", unset: "now" }),
} satisfies SettingTable;

const json = toggle("--json", { help: "print one JSON object" });

export const cronSettings = { timezone, ...nextSettings, json, ...connectionSettings } satisfies SettingTable;

/** A time with its offset from UTC. The value is in Unix milliseconds. */
function instantTextType(): ValueType<number> {
  return {
    placeholder: "time",
    fileType: "string",
    parse(written) {
      const ms = /^\d{4}-\d\d-\d\dT\d\d:\d\d\S*(Z|[+-]\d\d:\d\d)$/.test(written) ? Date.parse(written) : NaN;
      if (isInstant(ms)) return ms;
      throw new BatonError("USAGE", `"${written}" is not a time with its offset, such as 2026-11-24T03:00Z`);
    },
    format: (value) => new Date(value).toISOString(),
  };
}

/** The settings that an operation does not use. */
export const cronForms = {
  check: { refuses: { ...nextSettings, ...connectionSettings }, runsNothing: true },
  next: { refuses: connectionSettings, runsNothing: true },
  reset: { refuses: { timezone, ...nextSettings }, runsNothing: true },
} as const;

export type CronValues = Call<typeof cronSettings>["values"];

export type CronOperation = keyof typeof cronForms;
const operations = ["check", "next", "reset"] as const satisfies readonly CronOperation[];

/** Returns the operation and its only argument. Throws USAGE. */
export function cronOperationOf(
  { names, sources }: Pick<Call<typeof cronSettings>, "names" | "sources">,
): { readonly operation: CronOperation; readonly subject: string } {
  const [word, subject, ...more] = names;
  const operation = operations.find((one) => one === word);
  if (operation === undefined) {
    throw new BatonError("USAGE", "baton cron needs an operation: baton cron check FILE, next FILE, or reset NAME");
  }
  const what = operation === "reset" ? "NAME" : "FILE";
  if (subject === undefined || more.length > 0) {
    throw new BatonError(
      "USAGE",
      `baton cron ${operation} needs one ${what.toLowerCase()}, as in: baton cron ${operation} ${what}`,
    );
  }
  const wrongFlag = givenFlag(cronForms[operation].refuses, sources.flags);
  if (wrongFlag !== null) throw new BatonError("USAGE", `baton cron ${operation} does not use ${wrongFlag}`);
  return { operation, subject };
}

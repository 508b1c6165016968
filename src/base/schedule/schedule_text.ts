/** Parses a schedule in the form of crontab(5): five fields, or a macro such as @daily. */
import { sha256Hex } from "../support/digest.ts";
import { BatonError } from "../errors.ts";

interface Field {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** The names of the values; the first name stands for `min`. */
  readonly names: readonly string[];
}

const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const weekdays = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const fields: readonly Field[] = [
  { name: "minute", min: 0, max: 59, names: [] },
  { name: "hour", min: 0, max: 23, names: [] },
  { name: "day of the month", min: 1, max: 31, names: [] },
  { name: "month", min: 1, max: 12, names: months },
  { name: "day of the week", min: 0, max: 7, names: weekdays },
];

const macros: Readonly<Record<string, string>> = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
};

/** Macros of other programs that make no sense for a group of hosts, each with the reason. */
const refusedMacros: Readonly<Record<string, string>> = {
  "@reboot": "@reboot is about one host, not about a time",
  "@every": "@every has no fixed times; use a step, such as */10 in the field of the minute",
};

/** The reason why baton rejects a schedule with more than five fields. */
export const noSecondsFieldReason = "seconds and years have no field";

const timeValue = `(\\d{1,4}|${[...months, ...weekdays].join("|")})`;
/**
 * Matches an item of a time field, including items that only other programs allow: L for the last day, W for the
 * nearest workday, and # for the number of a weekday in its month.
 */
const timeItem = `(([*?]|${timeValue}(-${timeValue})?)(/\\d{1,4}|[LW]|#\\d)?|LW?)`;
const timeField = new RegExp(`^${timeItem}(,${timeItem})*$`, "i");

/** Returns true if a word looks like a field of a schedule, for this program or for another one. */
export function isScheduleField(word: string): boolean {
  return timeField.test(word);
}

/**
 * Returns the canonical text of a schedule, which is the same for all spellings: macros expanded, names as numbers,
 * Sunday as 0, one space between fields. Throws USAGE for an invalid schedule.
 */
export function canonicalSchedule(written: string): string {
  const refuse = (why: string) => {
    const wanted =
      "use five fields as in crontab(5), such as '*/5 * * * *', or @hourly, @daily, @weekly, @monthly, @yearly";
    return new BatonError("USAGE", `${JSON.stringify(written)} is not a schedule: ${why}; ${wanted}`);
  };
  const words = written.trim().toLowerCase().split(/\s+/).filter((word) => word !== "");
  const [first = ""] = words;
  if (first.startsWith("@")) {
    const macro = words.length === 1 ? macros[first] : undefined;
    if (macro !== undefined) return macro;
    throw refuse(refusedMacros[first] ?? `${JSON.stringify(first)} is unknown`);
  }
  if (words.length !== fields.length) {
    const more = words.length > fields.length && words.every(isScheduleField) ? `, and ${noSecondsFieldReason}` : "";
    throw refuse(`it has ${words.length} fields${more}`);
  }
  return fields.map((field, index) => canonicalField(words[index] ?? "", field, refuse)).join(" ");
}

function canonicalField(text: string, field: Field, refuse: (why: string) => BatonError): string {
  const wrong = (what: string) => refuse(`the ${field.name} ${JSON.stringify(text)} ${what}`);
  if (text.includes("~")) throw wrong("is a random time, which each host would choose differently");
  const value = (word: string, isEnd: boolean): number => {
    const named = field.names.indexOf(word);
    // FRI-SUN is 5-7, because a range must not end before its start. SUN-SUN is 0-0.
    if (named !== -1) return named === 0 && isEnd && field.max === 7 ? 7 : named + field.min;
    const number = /^\d{1,4}$/.test(word) ? Number(word) : NaN;
    if (number >= field.min && number <= field.max) return number;
    const names = field.names.length === 0 ? "" : `, or a name such as ${field.names[1]}`;
    throw wrong(`contains ${JSON.stringify(word)}, expected a number from ${field.min} to ${field.max}${names}`);
  };
  return text.split(",").map((item) => {
    const [range = "", step, ...more] = item.split("/");
    if (more.length > 0) throw wrong("has two steps in one item");
    const [start = "", end, ...rest] = range.split("-");
    if (rest.length > 0) throw wrong(`has the invalid range ${JSON.stringify(range)}`);
    const suffix = step === undefined ? "" : `/${stepOf(step, field, wrong)}`;
    if (range === "*") return `*${suffix}`;
    if (end === undefined) {
      if (suffix !== "") throw wrong("has a step after a single value; a step follows * or a range");
      return String(field.max === 7 ? value(start, false) % 7 : value(start, false));
    }
    const low = value(start, false);
    const high = value(end, low > 0);
    if (low > high) throw wrong(`has the range ${JSON.stringify(range)}, whose end is before its start`);
    return `${low}-${high}${suffix}`;
  }).join(",");
}

function stepOf(step: string, field: Field, wrong: (what: string) => BatonError): number {
  const number = /^\d{1,4}$/.test(step) ? Number(step) : 0;
  if (number >= 1 && number <= field.max) return number;
  throw wrong(`has the step ${JSON.stringify(step)}, expected a number from 1 to ${field.max}`);
}

/** Splits a stored schedule, such as "0 3 * * * +137s", into its times and its delay. */
export function splitScheduleDelay(written: string): { readonly times: string; readonly delaySeconds: number } {
  const [, times, seconds] = /^(.*\S)\s+\+(\d{1,6})s$/s.exec(written) ?? [];
  return times === undefined ? { times: written, delaySeconds: 0 } : { times, delaySeconds: Number(seconds) };
}

/** Returns a delay in whole seconds, from 0 up to `jitterMs`, that depends only on `name`. */
export function scheduleDelayFromName(name: string, jitterMs: number): number {
  const number = Number.parseInt(sha256Hex(name).slice(0, 8), 16);
  return number % (Math.floor(jitterMs / 1000) + 1);
}

export function scheduleId(canonical: string): string {
  return sha256Hex(canonical).slice(0, 12);
}

/**
 * Parses a crontab file in the format of crontab(5): jobs, and variables for the lines below them. A comment that
 * begins with #baton contains the options of the next job. Pure.
 */
import { BatonError, errorMessage } from "../../base/errors.ts";
import { durationType, integerType } from "../../base/config/value_types.ts";
import { historySettings } from "../settings/coordination_settings.ts";
import { encodeLockName } from "../nodes/node_paths.ts";
import { parseTimeZoneVariable } from "../../base/schedule/local_zone.ts";
import { Schedule } from "../../base/schedule/schedule.ts";
import { tickRetryDelayMsDefault } from "../tick/tick_decision.ts";
import { isScheduleField, noSecondsFieldReason } from "../../base/schedule/schedule_text.ts";
import { sha256Hex } from "../../base/support/digest.ts";
import { countWithNoun } from "../../base/support/text.ts";
import { nearestWord } from "../../base/support/did_you_mean.ts";

/** The options of a job, like those of `baton lock --tick`. Times are in milliseconds. */
export interface CronJobOptions {
  /** How long after its time a tick may begin; if undefined, --skew plus one minute. */
  readonly catchUpMs: number | undefined;
  /** How often a failed tick is tried again. */
  readonly retriesMax: number;
  /** The pause before the next try of a failed tick. */
  readonly retryDelayMs: number;
  /** The longest delay of the ticks. The job's name decides the actual delay, which its schedule contains. */
  readonly jitterMs: number;
  /** The reaction to a busy lock: the tick is skipped, or waits. */
  readonly overlap: "skip" | "wait";
  readonly maxHoldMs: number | undefined;
  /** The command that runs once when a tick has failed and is not tried again. */
  readonly onFailure: string | undefined;
  /** How many records the job's history keeps; if undefined, the service's limit. */
  readonly historyKeep: number | undefined;
  readonly historyMaxAge: number | undefined;
}

export interface CronJob {
  readonly line: number;
  /** The name of the lock. */
  readonly name: string;
  readonly schedule: Schedule;
  /** The command line for the shell. */
  readonly command: string;
  /** The command's standard input: the text after the first %. Null if there is no %. */
  readonly input: string | null;
  /** The variables that the lines before the job set. */
  readonly variables: ReadonlyMap<string, string>;
  readonly options: CronJobOptions;
}

export interface CrontabProblem {
  readonly line: number;
  readonly what: string;
}

export interface Crontab {
  readonly jobs: readonly CronJob[];
  readonly mistakes: readonly CrontabProblem[];
  /** Problems in lines that are valid, but mean something else in cron. */
  readonly warnings: readonly CrontabProblem[];
}

export interface CrontabContext {
  /** The first part of the names of jobs that are not named in the file. */
  readonly group: string;
  /** The time zone of lines for which no CRON_TZ is set. */
  readonly zone: string;
  isUser(word: string): boolean;
  /**
   * Returns true if the word is a program in `path`, the PATH of the command. If `path` is undefined, searches in
   * cron's PATH.
   */
  isProgram(word: string, path: string | undefined): boolean;
}

const jobsMax = 1000;
const variablesMax = 1000;
/** The maximum length of a line in bytes. Linux allows 128 KiB for a command that is one argument of a shell. */
const lineBytesMax = 64 * 1024;

export function parseCrontab(text: string, context: CrontabContext): Crontab {
  return new CrontabReader(context).read(text);
}

const utf8 = new TextEncoder();

/** A job as read from a line. Its name may depend on other lines. */
interface ReadJob extends Omit<CronJob, "name"> {
  readonly givenName: string | undefined;
}
const variableLine = /^("[^"]*"|'[^']*'|[A-Za-z_]\w*)\s*=\s*(.*)$/;
/** A value may stand in quotation marks, and then contains white space. */
const optionWord = /[^\s="']+=("[^"]*"|'[^']*')(?!\S)|\S+/g;
const jobLine = /^(@\S+|\S+\s+\S+\s+\S+\s+\S+\s+\S+)(?:\s+(.*))?$/;

class CrontabReader {
  readonly #context: CrontabContext;
  readonly #jobs: ReadJob[] = [];
  readonly #mistakes: CrontabProblem[] = [];
  readonly #warnings: CrontabProblem[] = [];
  /** The line of the first job above the maximum, and the number of such jobs. They are not read. */
  #excess: { readonly line: number; readonly count: number } | null = null;
  #variables = new Map<string, string>();
  /** True if a job uses these variables. They must then be copied before a change. */
  #areVariablesUsed = false;
  #zone: string;
  /** The options for the next job, and the line on which they are. */
  #pending: { readonly line: number; readonly values: ReadonlyMap<string, string> } | null = null;

  constructor(context: CrontabContext) {
    this.#context = context;
    this.#zone = context.zone;
  }

  read(text: string): Crontab {
    text.split("\n").forEach((line, index) => {
      try {
        this.#readLine(line.trim(), line, index + 1);
      } catch (thrown) {
        if (!(thrown instanceof BatonError)) throw thrown;
        this.#mistakes.push({ line: index + 1, what: errorMessage(thrown) });
        this.#pending = null;
      }
    });
    this.#refuseUnusedOptions();
    if (this.#excess !== null) {
      const { line, count } = this.#excess;
      this.#mistakes.push({ line, what: `the file has ${jobsMax + count} jobs; the maximum is ${jobsMax}` });
    }
    const jobs = this.#named();
    const inOrder = (problems: CrontabProblem[]) => problems.sort((left, right) => left.line - right.line);
    return { jobs, mistakes: inOrder(this.#mistakes), warnings: inOrder(this.#warnings) };
  }

  #readLine(text: string, written: string, line: number): void {
    if (text === "") return;
    if (written.endsWith("\r")) throw wrong("the line ends with a carriage return; save the file with Unix line ends");
    if (/\0/.test(text)) throw wrong("the line contains a NUL character");
    const bytes = utf8.encode(written).length;
    if (bytes > lineBytesMax) throw wrong(`the line has ${bytes} bytes; the maximum is ${lineBytesMax}`);
    if (/^#baton(\s|$)/.test(text)) return this.#readOptions(text.slice("#baton".length), line);
    if (/^#\s*baton:?\s+[\w-]+=/i.test(text)) {
      throw wrong("options of a job begin with #baton in small letters, without a space after # and without a colon");
    }
    if (text.startsWith("#")) return;
    const [, name, value] = variableLine.exec(text) ?? [];
    if (name !== undefined && value !== undefined) this.#readVariable(unquoted(name), unquoted(value), line);
    else this.#readJob(written.trimStart(), line);
  }

  #readVariable(name: string, value: string, line: number): void {
    if (name === "" || name.includes("=")) throw wrong(`${JSON.stringify(name)} is not the name of a variable`);
    if (name === "CRON_TZ") {
      const zone = value === "" ? this.#context.zone : parseTimeZoneVariable(value) ?? value;
      new Schedule("@daily", zone); // throws for an unknown zone
      this.#zone = zone;
    }
    const hint = ignoredVariables.get(name);
    if (hint !== undefined && value !== "") this.#warnings.push({ line, what: hint });
    if (this.#variables.size >= variablesMax && !this.#variables.has(name)) {
      throw wrong(`${JSON.stringify(name)} is one more variable; the maximum is ${variablesMax}`);
    }
    if (this.#areVariablesUsed) this.#variables = new Map(this.#variables);
    this.#areVariablesUsed = false;
    this.#variables.set(name, value);
  }

  #readOptions(text: string, line: number): void {
    this.#refuseUnusedOptions();
    const values = new Map<string, string>();
    this.#pending = { line, values };
    for (const [word] of text.matchAll(optionWord)) {
      const [, key = "", written = ""] = /^([^=]+)=(.+)$/.exec(word) ?? [];
      const value = unquoted(written);
      if (value === "") {
        throw wrong(`${JSON.stringify(word)} is not an option; expected KEY=VALUE, such as name=backup`);
      }
      if (!optionKeys.includes(key)) {
        const nearest = nearestWord(key, optionKeys);
        const hint = nearest === null ? `expected one of ${optionKeys.join(", ")}` : `did you mean ${nearest}?`;
        throw wrong(`the option ${key} is unknown; ${hint}`);
      }
      if (values.has(key)) throw wrong(`the option ${key} is given twice`);
      values.set(key, value);
    }
    jobOptionsOf(values); // throws for an invalid option; the error then has the line of the options
  }

  #refuseUnusedOptions(): void {
    if (this.#pending === null) return;
    const { line } = this.#pending;
    this.#pending = null;
    this.#mistakes.push({ line, what: "no job follows these options; expected one before the next #baton line" });
  }

  #readJob(text: string, line: number): void {
    const given = this.#pending?.values ?? new Map<string, string>();
    this.#pending = null;
    const [, fields, rest = ""] = jobLine.exec(text) ?? [];
    if (fields === undefined) {
      const shown = JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);
      throw wrong(
        `${shown} has ${
          countWithNoun(text.trim().split(/\s+/).length, "word")
        }, expected NAME=VALUE (letters, digits and _), or five ` +
          "fields of a schedule or a macro such as @daily, and a command",
      );
    }
    if (this.#jobs.length >= jobsMax) {
      this.#excess = { line: this.#excess?.line ?? line, count: (this.#excess?.count ?? 0) + 1 };
      return;
    }
    refuseFourFields(fields);
    const [command, ...input] = splitAtPercent(rest);
    this.#refuseWords(command?.trim() ?? "");
    const schedule = new Schedule(fields, this.#zone);
    if (command === undefined || command.trim() === "") throw wrong("the line has no command after the schedule");
    this.#areVariablesUsed = true;
    this.#jobs.push({
      line,
      givenName: given.get("name"),
      schedule,
      command: command.trim(),
      variables: this.#variables,
      input: input.length === 0 ? null : input.join("\n").replace(/(?<=[^\n])$/, "\n"),
      options: jobOptionsOf(given),
    });
  }

  /** Throws if a command begins with a sixth field of the schedule or with a user, as in files for other programs. */
  #refuseWords(command: string): void {
    const [first = "", ...more] = command.split(/\s+/);
    const { isUser, isProgram } = this.#context;
    const isField = first.startsWith("*") || isScheduleField(first);
    const isUserColumn = more.length > 0 && isUser(first);
    if (!isField && !isUserColumn || isProgram(first, this.#variables.get("PATH"))) return;
    if (isField) {
      const wanted = `expected five (${fieldNames}) or a macro, and a command: ${noSecondsFieldReason}`;
      throw wrong(`${JSON.stringify(first)} is one more field of a schedule; ${wanted}`);
    }
    throw wrong(
      `${JSON.stringify(first)} is a user of this machine, and no command; expected a command after the schedule: ` +
        "all jobs of a file run as the user of the service",
    );
  }

  /**
   * Returns the jobs with their names. A job without a name of its own is named after its schedule. If several jobs
   * have this schedule, the command also becomes a part of the name, because cron runs each of these jobs. Two jobs
   * with the same name and schedule are a mistake.
   */
  #named(): CronJob[] {
    const unnamed = Map.groupBy(
      this.#jobs.filter(({ givenName }) => givenName === undefined),
      ({ schedule }) => schedule.id,
    );
    const copies = new Map<string, ReadJob[]>();
    const jobs = new Map<string, CronJob>();
    for (const job of this.#jobs) {
      const { givenName, line, schedule } = job;
      let name = givenName ?? `${this.#context.group}/${schedule.id}`;
      if (givenName === undefined && (unnamed.get(schedule.id)?.length ?? 0) > 1) {
        name += `-${commandId(job)}`;
        const same = copies.get(name) ?? [];
        copies.set(name, [...same, job]);
        if (same[0] !== undefined) {
          this.#warnings.push({
            line,
            what: `line ${same[0].line} is the same; the command runs once for each of them, as with cron`,
          });
          name += `-${same.length + 1}`;
        }
      }
      const key = JSON.stringify([name, schedule.id]);
      const twin = jobs.get(key);
      if (twin === undefined) jobs.set(key, { ...job, name, schedule: schedule.spread(name, job.options.jitterMs) });
      else {
        const what = `line ${twin.line} has the same name and schedule, and so the same ticks; expected another name`;
        this.#mistakes.push({ line, what });
      }
    }
    return [...jobs.values()];
  }
}

const fieldNames = "minute, hour, day of the month, month, day of the week";
const dayNames = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/** Throws if four fields stand before a word that cannot be the day of the week, and so is the command. */
function refuseFourFields(fields: string): void {
  const words = fields.split(/\s+/);
  const [fifth = ""] = words.slice(4);
  const start = /^([/.]|[a-z]+)/i.exec(fifth)?.[0].toLowerCase();
  if (start === undefined || isScheduleField(fifth) || dayNames.some((name) => name.startsWith(start))) return;
  if (!words.slice(0, 4).every(isScheduleField)) return;
  throw wrong(
    `only four fields of a schedule stand before the command ${JSON.stringify(fifth)}; expected five (${fieldNames})`,
  );
}

/** The variables that mean something to cron but nothing to baton. */
const ignoredVariables: ReadonlyMap<string, string> = new Map([
  ["MAILTO", "baton sends no mail: output goes to the log; on-failure= of a job runs a command that can send one"],
  ["TZ", "TZ is a variable of the commands only; CRON_TZ is the time zone of the schedules"],
  ["RANDOM_DELAY", "RANDOM_DELAY has no effect; --splay spreads the hosts"],
]);

const catchUpType = durationType({ minMs: 1000, maxMs: 30 * 24 * 3_600_000 });
const retryDelayType = durationType({ maxMs: 30 * 24 * 3_600_000 });
const retryType = integerType("count", { min: 1, max: 100 });
const maxHoldType = durationType({ minMs: 1 });
const jitterType = durationType({ maxMs: 24 * 3_600_000 });
const optionKeys: readonly string[] = [
  "name",
  "catch-up",
  "retry",
  "retry-delay",
  "overlap",
  "max-hold",
  "on-failure",
  "jitter",
  "history-keep",
  "history-max-age",
];

function jobOptionsOf(values: ReadonlyMap<string, string>): CronJobOptions {
  const read = <T>(key: string, parse: (text: string) => T): T | undefined => {
    const written = values.get(key);
    if (written === undefined) return undefined;
    try {
      return parse(written);
    } catch (thrown) {
      throw wrong(`the option ${key}: ${errorMessage(thrown)}`);
    }
  };
  read("name", (name) => void encodeLockName(name));
  const catchUpMs = read("catch-up", catchUpType.parse);
  const retriesMax = read("retry", retryType.parse) ?? 0;
  if (retriesMax > 0 && catchUpMs === undefined) {
    throw wrong("the option retry needs catch-up, which limits how long after its time a tick may be tried again");
  }
  const delayMs = read("retry-delay", retryDelayType.parse);
  if (delayMs !== undefined && retriesMax === 0) throw wrong("the option retry-delay needs retry");
  if (delayMs !== undefined && delayMs >= (catchUpMs ?? Infinity)) {
    throw wrong("the option retry-delay is not shorter than catch-up, so that no tick would be tried again");
  }
  const overlap = read("overlap", (word) => {
    if (word === "skip" || word === "wait") return word;
    throw wrong(`${JSON.stringify(word)} is not one of skip, wait`);
  }) ?? "skip";
  return {
    catchUpMs,
    retriesMax,
    retryDelayMs: delayMs ?? tickRetryDelayMsDefault,
    overlap,
    jitterMs: read("jitter", jitterType.parse) ?? 0,
    maxHoldMs: read("max-hold", maxHoldType.parse),
    onFailure: values.get("on-failure"),
    historyKeep: read("history-keep", historySettings.historyKeep.type.parse),
    historyMaxAge: read("history-max-age", historySettings.historyMaxAge.type.parse),
  };
}

/**
 * Returns an ID of the job's command, unique among jobs with the same schedule. The ID does not depend on the host's
 * time zone.
 */
function commandId({ command, input, variables }: Pick<CronJob, "command" | "input" | "variables">): string {
  const written = JSON.stringify([command, input, variables.get("CRON_TZ") ?? ""]);
  return sha256Hex(written).slice(0, 12);
}

/** Splits the text at each % that has no backslash before it, and replaces `\%` by %. */
function splitAtPercent(text: string): string[] {
  const parts = [""];
  for (const [piece] of text.matchAll(/\\%|[^]/g)) {
    if (piece === "%") parts.push("");
    else parts.push((parts.pop() ?? "") + (piece === "\\%" ? "%" : piece));
  }
  return parts;
}

function unquoted(text: string): string {
  const [, , inside] = /^(["'])(.*)\1$/.exec(text) ?? [];
  return inside ?? text;
}

function wrong(what: string): BatonError {
  return new BatonError("CONFIG", what);
}

/**
 * The types of settings. A type defines how users write a value in a flag, a variable or a file, and the message for an
 * invalid value.
 */
import { BatonError } from "../errors.ts";
import { parseDuration } from "../support/duration.ts";
import { isPriorityName, namedPriorities } from "../support/priority.ts";

export interface SettingValueType<T> {
  /** The word for the value in the help, such as `duration`; empty for a switch. */
  readonly placeholder: string;
  /** How the value is written in a TOML file. */
  readonly fileType: "string" | "duration" | "integer" | "boolean" | "strings" | "words";
  readonly words?: readonly string[];
  /** The text that separates the values of a repeated flag, for a list. */
  readonly joint?: string;
  /** Parses `text`. Throws USAGE; the message quotes the text and names the expected form. */
  parse(text: string): T;
  /** Returns the text that `parse` turns into this value. */
  format(value: T): string;
}

function wordType<T extends string>(placeholder: string, parse: (written: string) => T): SettingValueType<T> {
  return { placeholder, fileType: "string", parse, format: (value) => value };
}

export function textType(placeholder: string): SettingValueType<string> {
  return wordType(placeholder, (written) => {
    if (written !== "") return written;
    throw new BatonError("USAGE", `the value is empty; expected ${placeholder}`);
  });
}

/** Accepts an absolute path. The meaning of a relative path would depend on the working directory. */
export function absolutePathType(): SettingValueType<string> {
  return wordType("folder", (written) => written.startsWith("/") ? written : refuse(written, "an absolute path"));
}

export function choiceType<const T extends string>(words: readonly T[]): SettingValueType<T> {
  const find = (written: string) => words.find((word) => word === written);
  const type = wordType(words.join("|"), (written) => find(written) ?? refuse(written, `one of ${words.join(", ")}`));
  return { ...type, words };
}

export function integerType(placeholder: string, bounds: { min: number; max: number }): SettingValueType<number> {
  return {
    placeholder,
    fileType: "integer",
    parse(written) {
      const value = /^\d{1,15}$/.test(written) ? Number(written) : Number.NaN;
      if (value >= bounds.min && value <= bounds.max) return value;
      return refuse(written, `a whole number from ${bounds.min} to ${bounds.max}`);
    },
    format: String,
  };
}

/** Accepts a duration: a number of seconds, or a number with a unit. The value is in whole milliseconds. */
export function durationType(
  { minMs = 0, maxMs = Infinity }: { minMs?: number; maxMs?: number } = {},
): SettingValueType<number> {
  return {
    placeholder: "duration",
    fileType: "duration",
    parse(written) {
      const milliseconds = parseDuration(written);
      if (milliseconds < minMs) return refuse(written, `a duration of at least ${writeDuration(minMs)}`);
      if (milliseconds > maxMs) return refuse(written, `a duration of at most ${writeDuration(maxMs)}`);
      return milliseconds;
    },
    format: writeDuration,
  };
}

/** Accepts the longest time to wait: a duration, or the word `forever`, whose value is Infinity. */
export function waitTimeType(): SettingValueType<number> {
  const durations = durationType();
  return {
    ...durations,
    parse: (written) => written === "forever" ? Infinity : durations.parse(written),
    format: (value) => value === Infinity ? "forever" : durations.format(value),
  };
}

/** Accepts a session timeout of at most 24 days, because ZooKeeper's protocol has 31 bits for its milliseconds. */
export function sessionTimeoutType({ minMs }: { minMs: number }): SettingValueType<number> {
  return durationType({ minMs, maxMs: 24 * 86_400_000 });
}

const sizeUnits: Record<string, number> = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3, TiB: 1024 ** 4 };

/** Accepts a size with a unit, such as `512B`, `64KiB` or `1MiB`. The value is in bytes. */
export function sizeType({ minBytes = 0 }: { minBytes?: number } = {}): SettingValueType<number> {
  return {
    placeholder: "size",
    fileType: "string",
    parse(written) {
      const match = /^(\d{1,12})(B|[KMGT]iB)$/.exec(written);
      const unit = match?.[2] === undefined ? undefined : sizeUnits[match[2]];
      if (match?.[1] === undefined || unit === undefined) return refuse(written, "a size such as 512B, 64KiB or 1MiB");
      const bytes = Number(match[1]) * unit;
      return bytes < minBytes ? refuse(written, `a size of at least ${writeSize(minBytes)}`) : bytes;
    },
    format: writeSize,
  };
}

/** Accepts a switch. The flag takes no value; the environment variable is "true" or "false". */
export function toggleType(): SettingValueType<boolean> {
  return {
    placeholder: "",
    fileType: "boolean",
    parse(written) {
      if (["true", "1", "yes", "on"].includes(written)) return true;
      if (["false", "0", "no", "off"].includes(written)) return false;
      return refuse(written, "true or false");
    },
    format: String,
  };
}

/**
 * Accepts a list of at least one text, separated by commas; a file may also contain an array. If `eachCounts` is true,
 * the positions have a meaning, so an empty text is an error.
 */
export function listType(
  placeholder: string,
  { eachCounts = false }: { readonly eachCounts?: boolean } = {},
): SettingValueType<readonly string[]> {
  return {
    placeholder,
    fileType: "strings",
    joint: ",",
    parse(written) {
      const all = written.split(",").map((part) => part.trim());
      const parts = all.filter((part) => part !== "");
      if (eachCounts && parts.length < all.length) refuse(written, `a list with a ${placeholder} in each position`);
      return parts.length > 0 ? parts : refuse(written, `a list with at least one ${placeholder}`);
    },
    format: (values) => values.join(","),
  };
}

const signals = ["HUP", "INT", "QUIT", "ABRT", "KILL", "USR1", "USR2", "ALRM", "TERM"] as const;

/** Accepts the name of a signal that can end a process, with or without the prefix SIG. */
export function signalNameType(): SettingValueType<NodeJS.Signals> {
  return {
    placeholder: "name",
    fileType: "string",
    parse(written) {
      const name = signals.find((signal) => signal === written || `SIG${signal}` === written);
      return name === undefined ? refuse(written, `one of ${signals.join(", ")}`) : `SIG${name}`;
    },
    format: (value) => value.slice(3),
  };
}

/** Accepts a priority: foreground, background or a number. The lowest number is served first. */
export function priorityType(): SettingValueType<number> {
  const numbers = integerType("0-999", { min: 0, max: 999 });
  return {
    placeholder: "foreground|background|0-999",
    fileType: "integer",
    parse(written) {
      if (isPriorityName(written)) return namedPriorities[written];
      if (/^\d{1,3}$/.test(written)) return numbers.parse(written);
      return refuse(written, "foreground, background or a number from 0 to 999");
    },
    format: (value) => Object.entries(namedPriorities).find(([, number]) => number === value)?.[0] ?? String(value),
  };
}

function refuse(written: string, expected: string): never {
  throw new BatonError("USAGE", `"${written}" is not ${expected}`);
}

function writeSize(bytes: number): string {
  const units = Object.entries(sizeUnits).reverse();
  const [name, factor] = units.find(([, unit]) => bytes % unit === 0) ?? ["B", 1];
  return `${bytes / factor}${name}`;
}

/** Returns the shortest form of a duration. */
function writeDuration(milliseconds: number): string {
  for (const [unit, factor] of [["h", 3_600_000], ["m", 60_000], ["s", 1000]] as const) {
    if (milliseconds > 0 && milliseconds % factor === 0) return `${milliseconds / factor}${unit}`;
  }
  return `${milliseconds}ms`;
}

/** Turns the text of a configuration file into checked values. It is loaded only if there is such a file. */
import { parse, TomlError } from "smol-toml";
import * as z from "zod/mini";
import { BatonError, errorMessage } from "../errors.ts";
import { didYouMean } from "../support/did_you_mean.ts";
import type { ConfigFile } from "./resolve_settings.ts";
import type { Setting, SettingTable } from "./setting.ts";

interface ConfigDocument {
  readonly value: unknown;
  /** Returns the line that sets a key, from 1; null if the file does not set it. */
  lineOf(key: string): number | null;
}

interface ConfigSource {
  readonly path: string;
  readonly source: string;
}

/**
 * Checks a whole file, including the settings of other commands. `mistakes` has a CONFIG error for each mistake, sorted
 * by line. `file` has the correct settings; it is null if the file is not TOML.
 */
export function checkConfigFile(
  settings: SettingTable,
  { path, source }: ConfigSource,
): { readonly file: ConfigFile | null; readonly mistakes: readonly BatonError[] } {
  let document: ConfigDocument;
  try {
    document = { value: parse(source), lineOf: (key) => lineOfKey(source, key) };
  } catch (thrown) {
    return { file: null, mistakes: [syntaxError(path, thrown)] };
  }
  const declared = Object.values(settings).filter((setting) => setting.key !== undefined);
  const { error } = schemaOf(declared).safeParse(document.value);
  const mistakes = (error?.issues ?? []).flatMap((issue) => mistakesOf(path, document, declared, issue));
  mistakes.sort((one, other) => (one.line ?? 0) - (other.line ?? 0));
  const values = new Map<string, string>();
  for (const setting of declared) {
    for (const path of pathsOf(setting.key ?? "", document.value)) {
      const written = leafSchema(setting).safeParse(valueAt(document.value, path));
      if (written.success && typeof written.data === "string") values.set(path.join("."), written.data);
    }
  }
  return { file: { path, values, lineOf: document.lineOf }, mistakes: mistakes.map(({ error }) => error) };
}

function syntaxError(path: string, cause: unknown): BatonError {
  const where = cause instanceof TomlError ? `${path}, line ${cause.line}` : path;
  const [why] = errorMessage(cause).split("\n");
  const advice = path.endsWith(".json") ? "; JSON files are not read: write the settings as TOML" : "";
  return new BatonError("CONFIG", `${where}: not valid TOML: ${why}${advice}`, { cause });
}

/**
 * Returns the line that sets a dotted key, from 1. The parser reports no positions, so this parses the first line, the
 * first two lines, and so on: the key is set after the last valid part that does not have it. This takes quadratic
 * time; only messages need it.
 */
function lineOfKey(source: string, key: string): number | null {
  const lines = source.split("\n");
  let lastValid = 0;
  for (let count = 1; count <= lines.length; count++) {
    let value: unknown;
    try {
      value = parse(lines.slice(0, count).join("\n"));
    } catch {
      continue; // inside a value of several lines
    }
    if (hasKey(value, key)) return lastValid + 1;
    lastValid = count;
  }
  return null;
}

/** A quoted name may itself contain dots. */
function hasKey(document: unknown, key: string): boolean {
  if (typeof document !== "object" || document === null) return false;
  if (Object.hasOwn(document, key)) return true;
  return Object.entries(document).some(([name, inner]) =>
    key.startsWith(`${name}.`) && hasKey(inner, key.slice(name.length + 1))
  );
}

/**
 * Returns the schema of a file. It rejects unknown keys at every level. The type of a setting checks its value, which
 * comes out in the form that its flag takes.
 */
function schemaOf(declared: readonly Setting<unknown>[]): z.ZodMiniType {
  interface Section {
    [name: string]: Section | z.ZodMiniType;
  }
  const root: Section = {};
  for (const setting of declared) {
    const names = setting.key?.split(".") ?? [];
    const leaf = names.pop();
    let section = root;
    for (const name of names) {
      const inner = section[name] ?? {};
      section[name] = inner;
      section = inner as Section;
    }
    if (leaf !== undefined) section[leaf] = z.optional(leafSchema(setting));
  }
  const close = (section: Section): z.ZodMiniType => {
    const { NAME: perName } = section;
    if (perName !== undefined) return z.optional(z.record(z.string(), close(perName as Section)));
    return z.optional(z.strictObject(Object.fromEntries(
      Object.entries(section).map(([name, inner]) => [name, "_zod" in inner ? inner : close(inner as Section)]),
    ) as Record<string, z.ZodMiniType>));
  };
  return close(root);
}

function leafSchema(setting: Setting<unknown>): z.ZodMiniType {
  const check = (written: string, context: { issues: unknown[]; value?: unknown }): string => {
    try {
      setting.type.parse(written);
    } catch (thrown) {
      context.issues.push({ code: "custom", message: errorMessage(thrown), input: written });
    }
    return written;
  };
  switch (setting.type.fileType) {
    case "string":
      return z.pipe(z.string(), z.transform(check));
    case "duration":
      return z.pipe(
        z.union([z.string(), z.number()]),
        z.transform((value, context) => check(String(value), context)),
      );
    case "integer":
      return z.pipe(z.int(), z.transform((value, context) => check(String(value), context)));
    case "boolean":
      return z.pipe(z.boolean(), z.transform((value, context) => check(String(value), context)));
    case "strings": {
      // A duration may be a number of seconds.
      const item = setting.type.placeholder === "duration" ? z.union([z.string(), z.number()]) : z.string();
      return z.pipe(
        z.union([item, z.array(item)]),
        z.transform((value, context) => check(Array.isArray(value) ? value.join(",") : String(value), context)),
      );
    }
    case "words":
      return z.pipe(
        z.union([z.string(), z.array(z.string())]),
        z.transform((value, context) => check(JSON.stringify(value), context)),
      );
  }
}

interface ConfigMistake {
  readonly line: number | null;
  readonly error: BatonError;
}

/** Turns an issue of the schema into mistakes: one for each unknown name, or one in total. */
function mistakesOf(
  path: string,
  document: ConfigDocument,
  declared: readonly Setting<unknown>[],
  issue: z.core.$ZodIssue,
): ConfigMistake[] {
  const unknown = issue.code === "unrecognized_keys" ? issue.keys : [undefined];
  return unknown.map((name) => {
    const key = [...issue.path, ...name === undefined ? [] : [name]].join(".");
    const line = document.lineOf(key);
    return { line, error: issueError(path, document, declared, issue, { key, line, unknown: name }) };
  });
}

function issueError(
  path: string,
  document: ConfigDocument,
  declared: readonly Setting<unknown>[],
  issue: z.core.$ZodIssue,
  { key, line, unknown }: { readonly key: string; readonly line: number | null; readonly unknown: string | undefined },
): BatonError {
  const where = line === null ? path : `${path}, line ${line}`;
  const keys = declared.flatMap((setting) => setting.key === undefined ? [] : keyAtPath(setting.key, issue.path));
  if (unknown !== undefined) {
    if (keys.includes(key) && unknown.includes(".")) {
      return new BatonError(
        "CONFIG",
        `${where}: "${unknown}" in quotation marks is a single name: write ${unknown} = … without the quotation marks`,
      );
    }
    return new BatonError("CONFIG", `${where}: there is no setting "${key}"${didYouMean(key, keys)}`);
  }
  const setting = declared.find((candidate) =>
    candidate.key !== undefined && keyAtPath(candidate.key, issue.path) === key
  );
  const isSecret = declared.some((one) => one.secret === true && (one.key === key || one.key?.startsWith(`${key}.`)));
  const value = isSecret ? "(secret)" : JSON.stringify(valueAt(document.value, issue.path));
  if (issue.code === "custom" && setting?.secret !== true) {
    return new BatonError("CONFIG", `${where}: ${key}: ${issue.message}`);
  }
  const wanted = setting === undefined
    ? "a section: write it as [SECTION] with settings below it"
    : fileTypes[setting.type.fileType];
  return new BatonError("CONFIG", `${where}: ${key} = ${value} is not ${wanted}`);
}

const fileTypes = {
  string: "a string in quotation marks",
  duration: 'a number of seconds, or a string with a unit such as "250ms" or "5m"',
  integer: "a whole number without quotation marks",
  boolean: "true or false without quotation marks",
  strings: "a string or an array of strings",
  words: "a string or an array of strings",
} as const;

/** Returns the paths of a setting's values: one path, or one for each section that the user named. */
function pathsOf(key: string, document: unknown): string[][] {
  const parts = key.split(".");
  const at = parts.indexOf("NAME");
  if (at < 0) return [parts];
  const sections = valueAt(document, parts.slice(0, at));
  const names = typeof sections === "object" && sections !== null ? Object.keys(sections) : [];
  return names.map((name) => parts.with(at, name));
}

/** Replaces NAME in a declared key by the name that `path` has in its place. */
function keyAtPath(key: string, path: readonly PropertyKey[]): string {
  return key.split(".").map((part, at) => (part === "NAME" ? String(path[at] ?? part) : part)).join(".");
}

function valueAt(document: unknown, path: readonly PropertyKey[]): unknown {
  let value = document;
  for (const part of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[part];
  }
  return value;
}

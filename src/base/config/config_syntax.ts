/**
 * Turns the text of a configuration file into checked values, and makes the JSON Schema of such a file for editors.
 * Loaded only if a configuration file exists.
 */
import { parse, TomlError } from "smol-toml";
import * as z from "zod/mini";
import { BatonError, errorMessage } from "../errors.ts";
import { didYouMean } from "../support/did_you_mean.ts";
import { tomlAdvice } from "./toml_advice.ts";
import type { ConfigFile } from "./resolve_settings.ts";
import { isPerSectionKey, type Setting, type SettingTable, settingVariableName } from "./setting.ts";

interface ConfigDocument {
  readonly value: unknown;
  /** Returns the line, from 1, that sets a key; null if the file does not set it. */
  lineOf(key: string): number | null;
}

interface ConfigSource {
  readonly path: string;
  readonly source: string;
}

/**
 * Checks a whole file, including the settings of other commands. `mistakes` has a CONFIG error for each mistake, sorted
 * by line. `file` has the correct settings, or is null if the file is not TOML.
 */
export function checkConfigFile(
  settings: SettingTable,
  { path, source }: ConfigSource,
): { readonly file: ConfigFile | null; readonly mistakes: readonly BatonError[] } {
  let document: ConfigDocument;
  try {
    document = { value: parse(source), lineOf: (key) => lineOfKey(source, key) };
  } catch (thrown) {
    return { file: null, mistakes: [syntaxError({ path, source }, thrown)] };
  }
  const declared = Object.values(settings).filter((setting) => setting.key !== undefined);
  const { error } = schemaOf(declared).safeParse(document.value);
  const mistakes = (error?.issues ?? []).flatMap((issue) => mistakesOf(path, document, Object.values(settings), issue));
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

/** Returns the JSON Schema of a configuration file, made from the schema that checks the file. */
export function configJsonSchema(settings: SettingTable): object {
  const declared = Object.values(settings).filter((setting) => setting.key !== undefined);
  return z.toJSONSchema(schemaOf(declared), { io: "input" });
}

function syntaxError({ path, source }: ConfigSource, cause: unknown): BatonError {
  const where = cause instanceof TomlError ? `${path}, line ${cause.line}` : path;
  const [why] = errorMessage(cause).split("\n");
  const advice = path.endsWith(".json")
    ? "JSON files are not read: write the settings as TOML"
    : cause instanceof TomlError
    ? tomlAdvice(source, cause)
    : null;
  return new BatonError("CONFIG", `${where}: not valid TOML: ${why}${advice === null ? "" : `; ${advice}`}`, { cause });
}

/**
 * Returns the line, from 1, that sets a dotted key, for messages. The parser reports no positions, so this function
 * parses the first line, the first two lines, and so on. The key is set on the line after the last valid part that does
 * not have the key. This takes quadratic time.
 */
function lineOfKey(source: string, key: string): number | null {
  const lines = source.split("\n");
  let lastValid = 0;
  for (let count = 1; count <= lines.length; count++) {
    let value: unknown;
    try {
      value = parse(lines.slice(0, count).join("\n"));
    } catch {
      continue; // these lines end inside a value of several lines
    }
    if (hasKey(value, key)) return lastValid + 1;
    lastValid = count;
  }
  return null;
}

/** Returns true if a document has a dotted key. A quoted name in the document may itself contain dots. */
function hasKey(document: unknown, key: string): boolean {
  if (typeof document !== "object" || document === null) return false;
  if (Object.hasOwn(document, key)) return true;
  return Object.entries(document).some(([name, inner]) =>
    key.startsWith(`${name}.`) && hasKey(inner, key.slice(name.length + 1))
  );
}

/**
 * Returns the schema of a file. The schema rejects unknown keys at every level. The type of each setting checks the
 * value, and turns the value into the text that the flag takes.
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
    if (leaf !== undefined) {
      section[leaf] = z.optional(leafSchema(setting).register(z.globalRegistry, editorFacts(setting)));
    }
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

function editorFacts({ type, help, key = "", secret, ...setting }: Setting<unknown>) {
  const unset = setting.default === undefined ? setting.unset : type.format(setting.default);
  const about = [
    ...(type.placeholder === "" ? [] : [type.placeholder]),
    ...(unset === undefined ? [] : [`default: ${unset}`]),
    ...(isPerSectionKey(key) ? [] : [`variable: ${settingVariableName(key)}`]),
  ];
  return {
    description: `${help} (${about.join("; ")})`,
    ...(type.words === undefined ? {} : { enum: [...type.words] }),
    ...(secret === true ? { writeOnly: true } : {}),
  };
}

function leafSchema({ type }: Setting<unknown>): z.ZodMiniType {
  const wordOrNumber = z.union([z.string(), z.number()]);
  switch (type.fileType) {
    case "string":
      return writtenAs(type, z.string(), String);
    case "duration":
      return writtenAs(type, wordOrNumber, String);
    case "integer":
      return writtenAs(type, z.union([z.string(), z.int()]), String);
    case "boolean":
      return writtenAs(type, z.boolean(), String);
    case "strings": {
      // A duration may be written as a number of seconds.
      const item = type.placeholder === "duration" ? wordOrNumber : z.string();
      return writtenAs(type, z.union([item, z.array(item)]), String);
    }
    case "words":
      return writtenAs(type, z.union([z.string(), z.array(z.string())]), JSON.stringify);
  }
}

/**
 * Returns the schema of a value in a file. `schema` checks its type; `format` writes the value as text, which the
 * setting's type then parses.
 */
function writtenAs<T>(
  type: Setting<unknown>["type"],
  schema: z.ZodMiniType<T>,
  format: (value: T) => string,
): z.ZodMiniType {
  const write = z.transform((value: T, context) => {
    const written = format(value);
    try {
      if (hasNul(value)) throw new BatonError("USAGE", "the value contains a NUL character");
      type.parse(written);
    } catch (thrown) {
      context.issues.push({ code: "custom", message: errorMessage(thrown), input: written });
    }
    return written;
  });
  return z.pipe(schema, write);
}

function hasNul(value: unknown): boolean {
  return [value].flat().some((part) => typeof part === "string" && part.includes("\0"));
}

interface ConfigMistake {
  readonly line: number | null;
  readonly error: BatonError;
}

/**
 * Turns an issue that the schema reports into mistakes: one mistake for each unknown name, otherwise a single mistake.
 */
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
    const flag = `--${unknown.replaceAll("_", "-")}`;
    const isOption = declared.some((one) => one.key === undefined && one.flag?.split(", ").includes(flag));
    const hint = isOption ? `: ${flag} is an option only` : didYouMean(key, keys);
    return new BatonError("CONFIG", `${where}: there is no setting "${key}"${hint}`);
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
  integer: "a whole number",
  boolean: "true or false without quotation marks",
  strings: "a string or an array of strings",
  words: "a string or an array of strings",
} as const;

/**
 * Returns the paths of a setting's values in a document: one path for each section that the user named, or a single
 * path.
 */
function pathsOf(key: string, document: unknown): string[][] {
  const parts = key.split(".");
  const at = parts.indexOf("NAME");
  if (at < 0) return [parts];
  const sections = valueAt(document, parts.slice(0, at));
  const names = typeof sections === "object" && sections !== null ? Object.keys(sections) : [];
  return names.map((name) => parts.with(at, name));
}

/** Replaces NAME in a declared key by the name at the same place in `path`. */
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

/** A configuration file's text to checked values. Loaded only when there is such a file. */
import { TomlError } from "smol-toml";
import * as z from "zod/mini";
import { BatonError, messageOf } from "../errors.ts";
import { didYouMean } from "../support/did_you_mean.ts";
import type { ConfigFile } from "./config_file.ts";
import { JsonSyntaxError, parseJsonSource } from "./json_source.ts";
import type { Setting, SettingTable } from "./setting.ts";
import { parseTomlSource, tomlLineOf } from "./toml_source.ts";

interface Document {
  readonly value: unknown;
  lineOf(key: string): number | null;
}

/** Throws the first mistake. */
export function parseConfigFile(settings: SettingTable, source: ConfigSource): ConfigFile {
  const { file, mistakes: [mistake] } = checkedConfigFile(settings, source);
  if (file === null || mistake !== undefined) throw mistake;
  return file;
}

interface ConfigSource {
  readonly path: string;
  readonly source: string;
}

/**
 * Checks the whole file, settings of other commands included. Every mistake is an error CONFIG, in the order of the lines; what is not
 * one is in `file`, which is null where nothing can be read.
 */
export function checkedConfigFile(
  settings: SettingTable,
  { path, source }: ConfigSource,
): { readonly file: ConfigFile | null; readonly mistakes: readonly BatonError[] } {
  let document: Document;
  try {
    document = path.endsWith(".json") ? readJson(path, source) : readToml(path, source);
  } catch (thrown) {
    if (thrown instanceof BatonError) return { file: null, mistakes: [thrown] };
    throw thrown;
  }
  const declared = Object.values(settings).filter((setting) => setting.key !== undefined);
  const { error } = schemaOf(declared).safeParse(document.value);
  const mistakes = (error?.issues ?? []).flatMap((issue) => complaints(path, document, declared, issue));
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

function readToml(path: string, source: string): Document {
  try {
    return { value: parseTomlSource(source), lineOf: (key) => tomlLineOf(source, key) };
  } catch (thrown) {
    const where = thrown instanceof TomlError ? `${path}, line ${thrown.line}` : path;
    const [why] = messageOf(thrown).split("\n");
    throw new BatonError("CONFIG", `${where}: this is not TOML: ${why}`, { cause: thrown });
  }
}

function readJson(path: string, source: string): Document {
  try {
    const { value, lines } = parseJsonSource(source);
    return { value, lineOf: (key) => lines.get(key) ?? null };
  } catch (thrown) {
    if (!(thrown instanceof JsonSyntaxError)) throw thrown;
    throw new BatonError("CONFIG", `${path}, line ${thrown.line}: this is not JSON: ${thrown.message}`, {
      cause: thrown,
    });
  }
}

/** Strict at every level; each value comes out as a flag would write it, after its own type has accepted it. */
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
      context.issues.push({ code: "custom", message: messageOf(thrown), input: written });
    }
    return written;
  };
  switch (setting.type.fileType) {
    case "string":
      return z.pipe(z.string(), z.transform(check));
    case "integer":
      return z.pipe(z.int(), z.transform((value, context) => check(String(value), context)));
    case "boolean":
      return z.pipe(z.boolean(), z.transform((value, context) => check(String(value), context)));
    case "strings":
      return z.pipe(
        z.union([z.string(), z.array(z.string())]),
        z.transform((value, context) => check(typeof value === "string" ? value : value.join(","), context)),
      );
    case "words":
      return z.pipe(
        z.union([z.string(), z.array(z.string())]),
        z.transform((value, context) => check(JSON.stringify(value), context)),
      );
  }
}

interface Complaint {
  readonly line: number | null;
  readonly error: BatonError;
}

/** One for each name that is unknown, else one. */
function complaints(
  path: string,
  document: Document,
  declared: readonly Setting<unknown>[],
  issue: z.core.$ZodIssue,
): Complaint[] {
  const unknown = issue.code === "unrecognized_keys" ? issue.keys : [undefined];
  return unknown.map((name) => {
    const key = [...issue.path, ...name === undefined ? [] : [name]].join(".");
    const line = document.lineOf(key);
    return { line, error: complaint(path, document, declared, issue, { key, line, unknown: name }) };
  });
}

function complaint(
  path: string,
  document: Document,
  declared: readonly Setting<unknown>[],
  issue: z.core.$ZodIssue,
  { key, line, unknown }: { readonly key: string; readonly line: number | null; readonly unknown: string | undefined },
): BatonError {
  const where = line === null ? path : `${path}, line ${line}`;
  const keys = declared.flatMap((setting) => setting.key === undefined ? [] : keyLike(setting.key, issue.path));
  if (unknown !== undefined) {
    if (keys.includes(key) && unknown.includes(".")) {
      return new BatonError(
        "CONFIG",
        `${where}: "${unknown}" is one name in its quotation marks: ${remedy(path, unknown)}`,
      );
    }
    return new BatonError("CONFIG", `${where}: there is no setting "${key}"${didYouMean(key, keys)}`);
  }
  if (key === "") return new BatonError("CONFIG", `${path} must contain an object with settings`);
  const setting = declared.find((candidate) =>
    candidate.key !== undefined && keyLike(candidate.key, issue.path) === key
  );
  const isSecret = declared.some((one) => one.secret === true && (one.key === key || one.key?.startsWith(`${key}.`)));
  const value = isSecret ? "(secret)" : JSON.stringify(valueAt(document.value, issue.path));
  if (issue.code === "custom" && setting?.secret !== true) {
    return new BatonError("CONFIG", `${where}: ${key}: ${issue.message}`);
  }
  const wanted = setting === undefined
    ? "a section with settings in it"
    : `written as ${fileTypes[setting.type.fileType]}`;
  return new BatonError("CONFIG", `${where}: ${key} = ${value} is not ${wanted}`);
}

/** How a section and a key are written where they were taken for one name. */
function remedy(path: string, name: string): string {
  if (!path.endsWith(".json")) return `write ${name} = … without them`;
  const [leaf = "", ...sections] = name.split(".").reverse();
  return `write ${sections.reduce((inner, section) => `"${section}": {${inner}}`, `"${leaf}": …`)}`;
}

const fileTypes = {
  string: "a text in quotation marks",
  integer: "a whole number without quotation marks",
  boolean: "true or false without quotation marks",
  strings: "a text or a list of texts",
  words: "a text or a list of texts",
} as const;

/** Where a setting's values are: one place, or one for each section that the user has named. */
function pathsOf(key: string, document: unknown): string[][] {
  const parts = key.split(".");
  const at = parts.indexOf("NAME");
  if (at < 0) return [parts];
  const sections = valueAt(document, parts.slice(0, at));
  const names = typeof sections === "object" && sections !== null ? Object.keys(sections) : [];
  return names.map((name) => parts.with(at, name));
}

/** A declared key, with the name in it that a place of the document has there. */
function keyLike(key: string, path: readonly PropertyKey[]): string {
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

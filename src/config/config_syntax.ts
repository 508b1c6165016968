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

/** Checks the whole file, settings of other commands included. Throws CONFIG for the first thing that is wrong. */
export function parseConfigFile(settings: SettingTable, file: { path: string; source: string }): ConfigFile {
  const { path } = file;
  const document = path.endsWith(".json") ? readJson(path, file.source) : readToml(path, file.source);
  const declared = Object.values(settings).filter((setting) => setting.key !== undefined);
  const result = schemaOf(declared).safeParse(document.value);
  if (!result.success) throw complaint(path, document, declared, result.error.issues[0]);
  const values = new Map<string, string>();
  for (const { key } of declared) {
    const written = key === undefined ? undefined : valueAt(result.data, key);
    if (key !== undefined && typeof written === "string") values.set(key, written);
  }
  return { path, values, lineOf: document.lineOf };
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
  const close = (section: Section): z.ZodMiniType =>
    z.optional(z.strictObject(Object.fromEntries(
      Object.entries(section).map(([name, inner]) => [name, "_zod" in inner ? inner : close(inner as Section)]),
    ) as Record<string, z.ZodMiniType>));
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
  }
}

function complaint(
  path: string,
  document: Document,
  declared: readonly Setting<unknown>[],
  issue: z.core.$ZodIssue | undefined,
): BatonError {
  const unknown = issue?.code === "unrecognized_keys" ? issue.keys[0] : undefined;
  const key = [...issue?.path ?? [], ...unknown === undefined ? [] : [unknown]].join(".");
  const line = document.lineOf(key);
  const where = line === null ? path : `${path}, line ${line}`;
  const keys = declared.flatMap((setting) => setting.key ?? []);
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
  const setting = declared.find((candidate) => candidate.key === key);
  const isSecret = declared.some((one) => one.secret === true && (one.key === key || one.key?.startsWith(`${key}.`)));
  const value = isSecret ? "(secret)" : JSON.stringify(valueAt(document.value, key));
  if (issue?.code === "custom" && setting?.secret !== true) {
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
} as const;

function valueAt(document: unknown, key: string): unknown {
  let value = document;
  for (const part of key.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Record<string, unknown>)[part];
  }
  return value;
}

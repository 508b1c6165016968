/** Decides which value a setting has: the flag's, else the variable's, else the file's, else the default. */
import { BatonError, errorMessage } from "../errors.ts";
import {
  isPerSectionKey,
  keyInSection,
  sectionInKey,
  type Setting,
  type SettingTable,
  type SettingValues,
  toVariableName,
} from "./setting.ts";

export interface ConfigFile {
  readonly path: string;
  /** The values by key, in the form that their flags take. */
  readonly values: ReadonlyMap<string, string>;
  /** Returns the line that sets a key, from 1. Computes it on each call. */
  lineOf(key: string): number | null;
}

export interface ConfigSources {
  /** The values on the command line, by the name of the setting. */
  readonly flags: ReadonlyMap<string, string>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Sorted by precedence; the first file wins. */
  readonly files: readonly ConfigFile[];
  /** The name of the section to use, among the sections named by users. */
  readonly section?: string | undefined;
}

/** Where a value came from. */
export type SettingOrigin =
  | { readonly kind: "flag"; readonly name: string }
  | { readonly kind: "environment"; readonly name: string }
  | { readonly kind: "file"; readonly name: string; readonly line: number | null }
  | { readonly kind: "default" };

interface FoundValue {
  readonly written: string;
  /** The key in a file; empty for a setting without one. */
  readonly key: string;
  readonly origin: () => Exclude<SettingOrigin, { readonly kind: "default" }>;
}

/**
 * Returns the values of all settings of the table. An empty variable counts as not set. Throws USAGE for an invalid
 * flag and CONFIG for an invalid variable; files were checked when they were read. `onMistake` gets the CONFIG errors
 * instead, and the default applies.
 */
export function resolveSettings<S extends SettingTable>(
  settings: S,
  sources: ConfigSources,
  onMistake?: (mistake: BatonError) => void,
): SettingValues<S> {
  const values: Record<string, unknown> = {};
  for (const [name, setting] of Object.entries(settings)) {
    try {
      values[name] = resolveSetting(name, setting, sources).value;
    } catch (thrown) {
      if (onMistake === undefined || !(thrown instanceof BatonError) || thrown.code !== "CONFIG") throw thrown;
      onMistake(thrown);
      values[name] = setting.default;
    }
  }
  return values as SettingValues<S>;
}

/** Returns the value of one setting and where it was set. Throws like `resolveSettings`. */
export function resolveSetting<T>(
  name: string,
  setting: Setting<T>,
  sources: ConfigSources,
): { value: T | undefined; origin: () => SettingOrigin } {
  const found = findValue(name, setting, sources);
  if (found === null) return { value: setting.default, origin: () => ({ kind: "default" }) };
  try {
    return { value: setting.type.parse(found.written), origin: found.origin };
  } catch (thrown) {
    const why = setting.secret === true ? `the value is not ${setting.type.placeholder}` : errorMessage(thrown);
    throw errorAt(found, why, thrown);
  }
}

/** Returns the names of the sections that users have written for these settings, sorted. */
export function configSectionNames(settings: SettingTable, files: readonly ConfigFile[]): string[] {
  const keys = Object.values(settings).flatMap(({ key }) => key ?? []);
  const written = files.flatMap(({ values }) => [...values.keys()]);
  return [...new Set(written.flatMap((one) => keys.flatMap((key) => sectionInKey(key, one) ?? [])))].sort();
}

/**
 * Runs `act`, which uses the value of the setting. The message of its errors then begins with the place where that
 * value was set.
 */
export function addOriginToErrors<T>(name: string, setting: Setting<unknown>, sources: ConfigSources, act: () => T): T {
  try {
    return act();
  } catch (thrown) {
    throw errorAt(findValue(name, setting, sources), errorMessage(thrown), thrown);
  }
}

/** Returns an error whose message begins with the place where the value was set. */
function errorAt(found: FoundValue | null, why: string, cause: unknown): BatonError {
  if (found === null) return new BatonError("CONFIG", why, { cause });
  const origin = found.origin();
  const line = origin.kind === "file" && origin.line !== null ? `, line ${origin.line}` : "";
  const place = origin.kind === "file" ? `${origin.name}${line}: ${found.key}` : origin.name;
  return new BatonError(origin.kind === "flag" ? "USAGE" : "CONFIG", `${place}: ${why}`, { cause });
}

function findValue(
  name: string,
  setting: Setting<unknown>,
  { flags, env, files, section }: ConfigSources,
): FoundValue | null {
  const given = setting.key ?? "";
  const key = section === undefined ? given : keyInSection(given, section);
  const flag = flags.get(name);
  if (flag !== undefined) {
    const long = setting.flag?.split(", ").pop() ?? name;
    return { written: flag, key, origin: () => ({ kind: "flag", name: long }) };
  }
  const isPerSection = isPerSectionKey(given);
  if (given === "" || (isPerSection && section === undefined)) return null;
  const variable = toVariableName(key);
  const inherited = isPerSection ? undefined : env[variable];
  if (inherited) return { written: inherited, key, origin: () => ({ kind: "environment", name: variable }) };
  const file = files.find(({ values }) => values.has(key));
  if (file === undefined) return null;
  const origin = () => ({ kind: "file", name: file.path, line: file.lineOf(key) }) as const;
  return { written: file.values.get(key) ?? "", key, origin };
}

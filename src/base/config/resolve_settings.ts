/**
 * Decides which value a setting has. The first place that has a value wins: command line, environment, file, default.
 */
import { BatonError, errorMessage } from "../errors.ts";
import {
  isPerSectionKey,
  type Setting,
  settingKeyInSection,
  type SettingTable,
  type SettingValues,
  settingVariableName,
} from "./setting.ts";

export interface ConfigFile {
  readonly path: string;
  /** The values by key, written as for the flags. */
  readonly values: ReadonlyMap<string, string>;
  /** Returns the line, from 1, that sets a key. Slow, because each call computes it. */
  lineOf(key: string): number | null;
}

export interface ConfigSources {
  /** The values on the command line, by the names of the settings. */
  readonly flags: ReadonlyMap<string, string>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The files in order of precedence; the first file wins. */
  readonly files: readonly ConfigFile[];
  /**
   * The name, chosen by the user, of the section that applies. Settings that each section has take their values from
   * this section.
   */
  readonly section?: string | undefined;
}

export type SettingOrigin =
  | { readonly kind: "flag"; readonly name: string }
  | { readonly kind: "environment"; readonly name: string }
  | { readonly kind: "file"; readonly name: string; readonly line: number | null }
  | { readonly kind: "default" };

interface FoundValue {
  readonly written: string;
  /** The key of the setting in a file; empty if files cannot contain the setting. */
  readonly key: string;
  readonly origin: () => Exclude<SettingOrigin, { readonly kind: "default" }>;
}

/**
 * Returns the values of all settings of the table. A variable that is empty counts as not set. Throws USAGE for an
 * invalid flag and CONFIG for an invalid variable; files have been checked before. If `onMistake` is given, it receives
 * the CONFIG errors instead, and the defaults apply.
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

/** Returns the value of one setting, and where it was set. Throws USAGE or CONFIG like `resolveSettings`. */
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

/**
 * Runs `act`, which uses the value of a setting. If `act` throws an error, adds the place where the value was set to
 * the start of the message.
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
  const key = section === undefined ? given : settingKeyInSection(given, section);
  const flag = flags.get(name);
  if (flag !== undefined) {
    const long = setting.flag?.split(", ").pop() ?? name;
    return { written: flag, key, origin: () => ({ kind: "flag", name: long }) };
  }
  const isPerSection = isPerSectionKey(given);
  if (given === "" || (isPerSection && section === undefined)) return null;
  const variable = settingVariableName(key);
  const inherited = isPerSection ? undefined : env[variable];
  if (inherited) return { written: inherited, key, origin: () => ({ kind: "environment", name: variable }) };
  const file = files.find(({ values }) => values.has(key));
  if (file === undefined) return null;
  const origin = () => ({ kind: "file", name: file.path, line: file.lineOf(key) }) as const;
  return { written: file.values.get(key) ?? "", key, origin };
}

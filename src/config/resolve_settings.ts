/** Who wins when a setting is named more than once: flag > variable > file > default. The only place that knows. */
import { BatonError, messageOf } from "../errors.ts";
import type { ConfigFile } from "./config_file.ts";
import {
  isPerName,
  keyOfName,
  nameInKey,
  type Setting,
  type SettingTable,
  type SettingValues,
  variableOf,
} from "./setting.ts";

export interface ConfigSources {
  /** Setting name → what the command line says. */
  readonly flags: ReadonlyMap<string, string>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The strongest first. */
  readonly files: readonly ConfigFile[];
  /** Whose section counts, of those that users name. */
  readonly section?: string | undefined;
}

/** Where a value came from. */
export type Origin =
  | { readonly kind: "flag"; readonly name: string }
  | { readonly kind: "environment"; readonly name: string }
  | { readonly kind: "file"; readonly name: string; readonly line: number | null }
  | { readonly kind: "default" };

interface Found {
  readonly written: string;
  /** What the value is called where it stands, for messages. */
  readonly where: () => string;
  readonly origin: () => Origin;
  readonly code: "USAGE" | "CONFIG";
}

/**
 * The value of every setting of the table. An empty variable counts as not set. Throws USAGE for a bad flag, CONFIG for
 * a bad variable (files were checked when they were read). With `onMistake` that is told instead, and the default counts.
 */
export function resolveSettings<S extends SettingTable>(
  settings: S,
  sources: ConfigSources,
  onMistake?: (mistake: BatonError) => void,
): SettingValues<S> {
  const values: Record<string, unknown> = {};
  for (const [name, setting] of Object.entries(settings)) {
    try {
      values[name] = resolveOne(name, setting, sources).value;
    } catch (thrown) {
      if (onMistake === undefined || !(thrown instanceof BatonError) || thrown.code !== "CONFIG") throw thrown;
      onMistake(thrown);
      values[name] = setting.default;
    }
  }
  return values as SettingValues<S>;
}

/** One setting's value and where it came from. Throws as `resolveSettings` does. */
export function resolveOne<T>(
  name: string,
  setting: Setting<T>,
  sources: ConfigSources,
): { value: T | undefined; origin: () => Origin } {
  const found = find(name, setting, sources);
  if (found === null) return { value: setting.default, origin: () => ({ kind: "default" }) };
  try {
    return { value: setting.type.parse(found.written), origin: found.origin };
  } catch (thrown) {
    const why = setting.secret === true ? `the value is not ${setting.type.placeholder}` : messageOf(thrown);
    throw blame(found, why, thrown);
  }
}

/** The names that users have given sections of these settings, in their order. */
export function sectionNames(settings: SettingTable, files: readonly ConfigFile[]): string[] {
  const keys = Object.values(settings).flatMap(({ key }) => key ?? []);
  const written = files.flatMap(({ values }) => [...values.keys()]);
  return [...new Set(written.flatMap((one) => keys.flatMap((key) => nameInKey(key, one) ?? [])))].sort();
}

/** What `act` throws is the fault of a setting's value: the message begins with where that stands. */
export function atOrigin<T>(name: string, setting: Setting<unknown>, sources: ConfigSources, act: () => T): T {
  try {
    return act();
  } catch (thrown) {
    throw blame(find(name, setting, sources), messageOf(thrown), thrown);
  }
}

function blame(found: Found | null, why: string, cause: unknown): BatonError {
  if (found === null) return new BatonError("CONFIG", why, { cause });
  return new BatonError(found.code, `${found.where()}: ${why}`, { cause });
}

function find(name: string, setting: Setting<unknown>, sources: ConfigSources): Found | null {
  const flag = sources.flags.get(name);
  if (flag !== undefined) {
    const long = setting.flag?.split(", ").pop() ?? name;
    return { written: flag, where: () => long, origin: () => ({ kind: "flag", name: long }), code: "USAGE" };
  }
  if (setting.key === undefined) return null;
  const { section } = sources;
  const isOfSection = isPerName(setting.key);
  if (isOfSection && section === undefined) return null;
  const key = section === undefined ? setting.key : keyOfName(setting.key, section);
  const variable = variableOf(key);
  const inherited = isOfSection ? undefined : sources.env[variable];
  if (inherited) {
    const origin = () => ({ kind: "environment", name: variable }) as const;
    return { written: inherited, where: () => variable, origin, code: "CONFIG" };
  }
  for (const file of sources.files) {
    const written = file.values.get(key);
    if (written === undefined) continue;
    const where = () => {
      const line = file.lineOf(key);
      return `${file.path}${line === null ? "" : `, line ${line}`}: ${key}`;
    };
    return {
      written,
      where,
      origin: () => ({ kind: "file", name: file.path, line: file.lineOf(key) }),
      code: "CONFIG",
    };
  }
  return null;
}

/**
 * Declares settings, each with its flag, file key, environment variable, help, type and default. resolve_settings.ts
 * decides which of several given values applies.
 */
import { type SettingValueType, toggleType } from "./value_types.ts";

/** The groups of options in the help. commands/program/help/command_page.ts defines their headings and order. */
export type OptionGroup =
  | "main"
  | "waiting"
  | "ticks"
  | "command"
  | "health"
  | "policy"
  | "processing"
  | "limits"
  | "security"
  | "output"
  | "connection"
  | "general";

export interface Setting<T> {
  readonly type: SettingValueType<NonNullable<T>>;
  readonly help: string;
  /** The flag without its value: `-z, --servers`. Secrets have no flag, because all users can read a command line. */
  readonly flag?: string;
  /** Other forms of the flag, such as flock's `--timeout`. Completions do not offer these forms. */
  readonly aliases?: string;
  /**
   * The key in a file, such as `session.timeout`. The environment variable has the same name: BATON_SESSION_TIMEOUT. A
   * setting has a key if several calls or processes share its value: addresses of services, access rights, limits of a
   * machine, and what all processes must agree on. Other settings belong to one call or process and have only a flag.
   */
  readonly key?: string;
  readonly default?: NonNullable<T>;
  readonly unset?: string;
  /**
   * True if the flag may be given only once. A second flag is an error, because the user probably wants both values.
   */
  readonly once?: boolean;
  /** The group in which the help shows the flag; `main` by default. */
  readonly group?: OptionGroup;
  /**
   * True if the short help (`-h`) always shows the flag, false if it never does. The short help shows at most ten
   * flags: the basic flags, then the first flags of the group `main`.
   */
  readonly basic?: boolean;
  /** True for a value that baton never prints, and whose variable it removes from the environment of commands. */
  readonly secret?: boolean;
}

export type SettingTable = Readonly<Record<string, Setting<unknown>>>;

/** The values of a table of settings. A value can be undefined only if the setting has no default. */
export type SettingValues<S> = { readonly [Name in keyof S]: S[Name] extends Setting<infer T> ? T : never };

type SettingDeclaration<T> = Omit<Setting<T>, "type" | "default">;

export function setting<T extends NonNullable<unknown>>(
  type: SettingValueType<T>,
  declaration: SettingDeclaration<T> & { readonly default: NoInfer<T> },
): Setting<T>;
export function setting<T extends NonNullable<unknown>>(
  type: SettingValueType<T>,
  declaration: SettingDeclaration<T>,
): Setting<T | undefined>;
export function setting<T extends NonNullable<unknown>>(
  type: SettingValueType<T>,
  declaration: SettingDeclaration<T> & { readonly default?: NoInfer<T> },
): Setting<T> | Setting<T | undefined> {
  return { type, ...declaration };
}

/** Declares a setting that only the command line has. */
export function flagSetting<T extends NonNullable<unknown>>(
  flag: string,
  type: SettingValueType<T>,
  declaration: Omit<SettingDeclaration<T>, "flag" | "key"> & { readonly default: NoInfer<T> },
): Setting<T>;
export function flagSetting<T extends NonNullable<unknown>>(
  flag: string,
  type: SettingValueType<T>,
  declaration: Omit<SettingDeclaration<T>, "flag" | "key">,
): Setting<T | undefined>;
export function flagSetting<T extends NonNullable<unknown>>(
  flag: string,
  type: SettingValueType<T>,
  declaration: object,
): Setting<T> {
  return { type, flag, ...declaration as SettingDeclaration<T> };
}

/** Declares a switch that only the command line has; it is off by default. */
export function toggleSetting(
  flag: string,
  declaration: Omit<SettingDeclaration<boolean>, "flag" | "key">,
): Setting<boolean> {
  return { type: toggleType(), flag, default: false, ...declaration };
}

/** The help of `--insecure`, which every service has that can listen on the network. */
export const insecureFlagHelp = "listen where other machines can connect, also without TLS or keys";

/**
 * Returns a function that declares the settings of a section (`retry.`, or empty). The key of a setting is `section`
 * followed by `name`. The flag is `name` with dashes, unless the declaration has a `flag` with a short form.
 */
export function sectionSettingDeclarer(section: string) {
  function declare<T extends NonNullable<unknown>>(
    name: string,
    type: SettingValueType<T>,
    declaration: Omit<SettingDeclaration<T>, "key"> & { readonly default: NoInfer<T> },
  ): Setting<T>;
  function declare<T extends NonNullable<unknown>>(
    name: string,
    type: SettingValueType<T>,
    declaration: Omit<SettingDeclaration<T>, "key">,
  ): Setting<T | undefined>;
  function declare<T extends NonNullable<unknown>>(
    name: string,
    type: SettingValueType<T>,
    declaration: object,
  ): Setting<T> {
    const flag = `--${name.replaceAll(/[._]/g, "-")}`;
    return { type, flag, key: section + name, ...declaration as SettingDeclaration<T> };
  }
  return declare;
}

/**
 * Puts the settings of a new table into `group`, except those that declare a group. Changes the settings in place,
 * because copies would take time at each start.
 */
export function putSettingsIntoGroup<S extends SettingTable>(group: OptionGroup, table: S): S {
  for (const name in table) (table[name] as { group?: OptionGroup }).group ??= group;
  return table;
}

/**
 * The part of a key that stands for a name that the user chooses. Each name has its own section in a file. A key with
 * this part has no environment variable.
 */
const namePlace = ".NAME.";

export function isPerSectionKey(key: string): boolean {
  return key.includes(namePlace);
}

export function settingKeyInSection(key: string, name: string): string {
  return key.replace(namePlace, () => `.${name}.`);
}

/** Returns the environment variable of a file key: `session.timeout` gives BATON_SESSION_TIMEOUT. */
export function settingVariableName(key: string): string {
  return `BATON_${key.replaceAll(".", "_").toUpperCase()}`;
}

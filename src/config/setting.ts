/**
 * A setting is declared once: its flag, the variable and the file key that go by the same name, its help, type and
 * default. Who wins when several of them name a value is in resolve.ts.
 */
import type { ValueType } from "./value_types.ts";

export interface Setting<T> {
  readonly type: ValueType<NonNullable<T>>;
  readonly help: string;
  /** As the help shows it, without the value: `-z, --servers`. A secret has none: argv is readable by everybody. */
  readonly flag?: string;
  /** Its place in a file, `session.timeout`; the variable BATON_SESSION_TIMEOUT follows. Left out: a flag only. */
  readonly key?: string;
  readonly default?: NonNullable<T>;
  /** What happens when nothing names a value, where there is no default to print. */
  readonly unset?: string;
  /**
   * As a flag it is given once: a second one would be another thing to do, to take or to leave out, and no correction of the
   * first.
   */
  readonly once?: boolean;
  /** Its value is never printed, and its variable is not handed to the child. */
  readonly secret?: boolean;
}

export type SettingTable = Readonly<Record<string, Setting<unknown>>>;

/** The values of a table of settings; undefined only where a setting has no default. */
export type SettingValues<S> = { readonly [Name in keyof S]: S[Name] extends Setting<infer T> ? T : never };

type Declaration<T> = Omit<Setting<T>, "type" | "default">;

export function setting<T extends NonNullable<unknown>>(
  type: ValueType<T>,
  declaration: Declaration<T> & { readonly default: NoInfer<T> },
): Setting<T>;
export function setting<T extends NonNullable<unknown>>(
  type: ValueType<T>,
  declaration: Declaration<T>,
): Setting<T | undefined>;
export function setting<T extends NonNullable<unknown>>(
  type: ValueType<T>,
  declaration: Declaration<T> & { readonly default?: NoInfer<T> },
): Setting<T> | Setting<T | undefined> {
  return { type, ...declaration };
}

/** In a key, the place of a name that the user chooses: there is a section for each. Such a key has no variable. */
const namePlace = ".NAME.";

export function isPerName(key: string): boolean {
  return key.includes(namePlace);
}

/** The key of a setting in the section of this name. */
export function keyOfName(key: string, name: string): string {
  return key.replace(namePlace, () => `.${name}.`);
}

/** The name in whose section a key of a file is; null: it is none of this setting's. */
export function nameInKey(key: string, written: string): string | null {
  const [before = "", after] = key.split("NAME");
  if (after === undefined || !written.startsWith(before) || !written.endsWith(after)) return null;
  return written.length > before.length + after.length ? written.slice(before.length, -after.length) : null;
}

/** The variable of a file key: `session.timeout` is BATON_SESSION_TIMEOUT. */
export function variableOf(key: string): string {
  return `BATON_${key.replaceAll(".", "_").toUpperCase()}`;
}

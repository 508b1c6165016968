/** A lock's options as they go from `baton hold` to its holder: as JSON, which knows neither maps nor functions. Pure. */
import type { LockCommandOptions } from "../lock/lock_options.ts";

export interface PackedLockOptions extends Omit<LockCommandOptions, "sources"> {
  readonly flags: readonly (readonly [string, string])[];
  readonly files: readonly PackedFile[];
}

interface PackedFile {
  readonly path: string;
  readonly values: readonly (readonly [key: string, value: string, line: number | null])[];
}

export function packed({ sources, ...options }: LockCommandOptions): PackedLockOptions {
  return {
    ...options,
    flags: [...sources.flags],
    files: sources.files.map(({ path, values, lineOf }) => ({
      path,
      values: [...values].map(([key, value]) => [key, value, lineOf(key)] as const),
    })),
  };
}

export function unpacked(
  { flags, files, ...options }: PackedLockOptions,
  env: Readonly<Record<string, string | undefined>>,
): LockCommandOptions {
  const sources = {
    env,
    flags: new Map(flags),
    files: files.map(({ path, values }) => ({
      path,
      values: new Map(values.map(([key, value]) => [key, value])),
      lineOf: (key: string) => values.find(([name]) => name === key)?.[2] ?? null,
    })),
  };
  return { ...options, sources };
}

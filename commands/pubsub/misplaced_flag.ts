/** A flag that was given to an operation that it would do nothing for. Pure. */

export interface FlagUse {
  readonly flag: string;
  /** The operations that it is for. */
  readonly of: readonly string[];
}

/** `uses`: of flags that are not for every operation, by the setting's name; `given`: settings that were given as flags. */
export function misplacedFlag(
  uses: Readonly<Record<string, FlagUse>>,
  operation: string,
  given: ReadonlyMap<string, unknown>,
): FlagUse | null {
  return Object.entries(uses).find(([name, { of }]) => given.has(name) && !of.includes(operation))?.[1] ?? null;
}

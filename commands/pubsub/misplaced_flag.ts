/** Finds a flag that has no effect for an operation. Pure. */

export interface OperationFlagUse {
  readonly flag: string;
  /** Operations that have this flag. */
  readonly of: readonly string[];
}

/**
 * `uses`: flags that only some operations have, by the name of the setting. `given`: settings that were given as flags.
 */
export function findMisplacedFlag(
  uses: Readonly<Record<string, OperationFlagUse>>,
  operation: string,
  given: ReadonlyMap<string, unknown>,
): OperationFlagUse | null {
  return Object.entries(uses).find(([name, { of }]) => given.has(name) && !of.includes(operation))?.[1] ?? null;
}

/** Finds a flag that has no effect for an operation. */

export interface OperationsOfFlag {
  readonly flag: string;
  readonly of: readonly string[];
}

/**
 * Returns a given flag that the operation does not have; null if there is none. `uses` lists the flags that only some
 * operations have, by setting name. `given` contains the settings that were given as flags.
 */
export function findMisplacedFlag(
  uses: Readonly<Record<string, OperationsOfFlag>>,
  operation: string,
  given: ReadonlyMap<string, unknown>,
): OperationsOfFlag | null {
  return Object.entries(uses).find(([name, { of }]) => given.has(name) && !of.includes(operation))?.[1] ?? null;
}

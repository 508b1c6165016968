/** Finds the locks under which this call runs, in the environment that the outer baton has set. Pure. */
import { BatonError } from "../../base/errors.ts";
import type { Io } from "../../base/terminal/io.ts";

export interface OuterLocks {
  readonly locks: readonly {
    readonly name: string;
    readonly path: string;
  }[];
  /** The holder IDs of these locks, and of all locks further out. */
  readonly ids: readonly string[];
}

/** Returns the locks of the innermost outer call of baton; null if this call does not run under a lock. */
function findOuterLocks(env: Io["env"]): OuterLocks | null {
  const names = env["BATON_LOCK_NAME"]?.split("\n") ?? [];
  const paths = env["BATON_LOCK_PATH"]?.split("\n").filter(Boolean) ?? [];
  const ids = outerHolderIds(env);
  if (names.length === 0 || paths.length === 0 || ids.length === 0) return null;
  return { locks: paths.map((path, index) => ({ name: names[index] ?? path, path })), ids };
}

/** Returns the IDs of all holders under which this call runs. */
export function outerHolderIds(env: Io["env"]): string[] {
  return (env["BATON_LOCK_COOKIE"] ?? "").split(":").filter(Boolean);
}

/** Returns the locks under which this call runs. Throws USAGE if there are none. */
export function requireOuterLocks(env: Io["env"]): OuterLocks {
  const job = findOuterLocks(env);
  if (job !== null) return job;
  throw new BatonError(
    "USAGE",
    "There is no lock to check: run baton check inside baton lock, hold, elect, barrier or pool",
  );
}

/**
 * Throws USAGE if an outer call holds the lock: this call would wait for the lock forever. `holders` reads the lock's
 * holders.
 */
export type NestedLockCheck = (
  name: string,
  holders: () => Promise<readonly { readonly holderId: string }[]>,
) => Promise<void>;

/** Returns a check for locks that an outer call holds. Returns null if this call does not run under a lock. */
export function nestedLockCheck(io: Io): NestedLockCheck | null {
  const cookies = outerHolderIds(io.env);
  if (cookies.length === 0) return null;
  return async (name, holders) => {
    if (!(await holders()).some(({ holderId }) => cookies.includes(holderId))) return;
    throw new BatonError(
      "USAGE",
      `"${name}" is already held by this command: it runs under a baton lock or baton hold of that lock`,
    );
  };
}

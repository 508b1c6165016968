/** Locks of the command or script around this call, as found in the environment. Pure. */
import { BatonError } from "../../base/errors.ts";
import type { Io } from "../../base/terminal/io.ts";

export interface OuterLocks {
  readonly locks: readonly {
    readonly name: string;
    readonly path: string;
  }[];
  /** Ids of the holders, including those of outer locks. */
  readonly ids: readonly string[];
}

/** Returns the locks of the innermost call; null outside a lock. */
function findOuterLocks(env: Io["env"]): OuterLocks | null {
  const names = env["BATON_LOCK_NAME"]?.split("\n") ?? [];
  const paths = env["BATON_LOCK_PATH"]?.split("\n").filter(Boolean) ?? [];
  const ids = outerHolderIds(env);
  if (names.length === 0 || paths.length === 0 || ids.length === 0) return null;
  return { locks: paths.map((path, index) => ({ name: names[index] ?? path, path })), ids };
}

/** Ids of the holders around this call. */
export function outerHolderIds(env: Io["env"]): string[] {
  return (env["BATON_LOCK_COOKIE"] ?? "").split(":").filter(Boolean);
}

/** Throws USAGE outside a lock. */
export function requireOuterLocks(env: Io["env"], command: string, what: string): OuterLocks {
  const job = findOuterLocks(env);
  if (job !== null) return job;
  throw new BatonError(
    "USAGE",
    `There is no lock to ${what}: run ${command} inside baton lock, hold, elect, barrier or pool`,
  );
}

/**
 * Throws USAGE for a lock that the outer command holds, because it would wait for itself forever. `holders` reads the
 * holders.
 */
export type NestedLockCheck = (
  name: string,
  holders: () => Promise<readonly { readonly holderId: string }[]>,
) => Promise<void>;

/** Returns null if this call does not run under a lock. */
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

/** What a command under `baton lock`, or a script with `baton hold`, learns of its locks from its environment, when it is baton itself. Pure. */
import { BatonError } from "../../src/errors.ts";
import type { Io } from "../../src/terminal/io.ts";

export interface HeldJob {
  readonly locks: readonly {
    readonly name: string;
    readonly path: string;
  }[];
  /** The holders' ids, those of locks around this one included. */
  readonly ids: readonly string[];
}

/** Of the innermost call. Null outside a lock. */
export function heldJobOf(env: Readonly<Record<string, string | undefined>>): HeldJob | null {
  const names = env["BATON_LOCK_NAME"]?.split("\n") ?? [];
  const paths = env["BATON_LOCK_PATH"]?.split("\n").filter(Boolean) ?? [];
  const ids = (env["BATON_LOCK_COOKIE"] ?? "").split(":").filter(Boolean);
  if (names.length === 0 || paths.length === 0 || ids.length === 0) return null;
  return { locks: paths.map((path, index) => ({ name: names[index] ?? path, path })), ids };
}

/** Throws USAGE outside a lock. */
export function demandHeldJob(
  env: Readonly<Record<string, string | undefined>>,
  command: string,
  what: string,
): HeldJob {
  const job = heldJobOf(env);
  if (job !== null) return job;
  throw new BatonError(
    "USAGE",
    `There is no lock to ${what}: ${command} is for what runs under baton lock, hold, elect, barrier or pool`,
  );
}

/** Throws USAGE for a lock that the job holds; `holders` looks who has it. */
export type NestedJob = (
  name: string,
  holders: () => Promise<readonly { readonly holderId: string }[]>,
) => Promise<void>;

/** Null where there is no job around this call. */
export function nestedJob(io: Io): NestedJob | null {
  const cookies = (io.env["BATON_LOCK_COOKIE"] ?? "").split(":").filter((cookie) => cookie !== "");
  if (cookies.length === 0) return null;
  return async (name, holders) => {
    if (!(await holders()).some(({ holderId }) => cookies.includes(holderId))) return;
    throw new BatonError(
      "USAGE",
      `"${name}" is already held by this job: a baton lock or baton hold around this call has it`,
    );
  };
}

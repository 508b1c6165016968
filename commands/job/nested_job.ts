/** A job that waits for itself waits for ever: its children know the ids of what it holds, by their environment. */
import type { Io } from "../../src/terminal/io.ts";
import { BatonError } from "../../src/errors.ts";

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

/** `baton pool forget`: how items have ended is remembered no longer; all of a component, or those that are named. */
import { systemClock } from "../../src/support/clock.ts";
import { clearPoolResults } from "../../src/coordination/pool/clear_pool_results.ts";
import type { Call } from "../command.ts";
import { connected } from "../coordination/connected.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import type { poolCommandSettings, PoolStatusOptions } from "./pool_options.ts";
import { namedItems } from "./pool_query.ts";

export async function forgetPoolItems(
  options: PoolStatusOptions,
  call: Call<typeof poolCommandSettings>,
): Promise<ExitCode> {
  const { values, io } = call;
  const { component, path } = options;
  const named = await namedItems(options, { path: null, queryTimeoutMs: values.queryTimeout });
  const count = await connected(call, (zk) => clearPoolResults(zk, { path, named, clock: systemClock() }));
  const what = count === 0
    ? `nothing to forget: no end of ${
      named === null ? "an item" : "one of these items"
    } of "${component}" is remembered`
    : `${count === 1 ? "the end of one item" : `${count} ends of items`} of "${component}" ${
      count > 1 ? "are" : "is"
    } forgotten`;
  if (!values.quiet) io.err(`baton: ${what}\n`);
  return exitCodes.SUCCESS;
}

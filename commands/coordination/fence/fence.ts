/** `baton fence`: rejects work with a stale fencing token. */
import { BatonError } from "../../../src/base/errors.ts";
import { didYouMean } from "../../../src/base/support/did_you_mean.ts";
import { type CommandCall, defineCommand } from "../../command.ts";
import type { ExitCode } from "../../../src/base/exit_codes.ts";
import { fenceSettings } from "./fence_options.ts";

export const fenceCommand = defineCommand({
  name: "fence",
  summary: "run a command, unless the lock was granted to another holder since",
  usage: "run --store FILE [options] COMMAND [ARGUMENT…]",
  details: [
    "Each grant of a lock has a higher fencing token than the one before. The store is a file with the highest " +
    "token so far. baton fence run does not run a command with a lower token (exit 86): its lock was granted to " +
    "another holder since, for example while its machine was suspended. The store is held while the command runs, " +
    "so no process with a newer token runs at the same time. This is also true if baton is killed, as long as the " +
    "command and processes with its descriptors run.",
    "All programs that write the protected data must use the store. Its file system must support flock(2).",
  ],
  examples: [
    [
      "baton lock nightly -- sh -c 'prepare; baton fence run --store /srv/db/fence -- ./write.sh'",
      "do not run write.sh if nightly was granted to another holder in the meantime",
    ],
    ["baton fence run --store ./fence --token 42 -- ./write.sh", "use a token from another source"],
  ],
  settings: fenceSettings,
  syntax: { commandAfter: ([first]) => first === "run", flagHints: {} },
  completesFirst: { run: [] },
  run: fence,
});

async function fence(call: CommandCall<typeof fenceSettings>): Promise<ExitCode> {
  const [action = "", ...more] = call.names;
  if (action === "run") return await (await import("./fence_run.ts")).runFenceRun(call);
  const given = action === ""
    ? "but none was given"
    : `not "${[action, ...more].join(" ")}"${didYouMean(action, ["run"])}`;
  throw new BatonError("USAGE", `baton fence takes run, ${given}, as in: baton fence run --store FILE -- COMMAND`);
}

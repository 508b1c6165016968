/** `baton fence`: rejects work with a stale fencing token. This file selects between `run` and `zk`. */
import type { SettingTable } from "../../../src/base/config/setting.ts";
import { BatonError } from "../../../src/base/errors.ts";
import { didYouMean } from "../../../src/base/support/did_you_mean.ts";
import { type CommandCall, defineCommand } from "../../command.ts";
import type { ExitCode } from "../../../src/base/exit_codes.ts";
import { fenceCommandSyntax, fenceForms, fenceSettings } from "./fence_options.ts";
import { findGivenFlag } from "../../command.ts";

const usage = "run --store FILE [options] COMMAND [ARGUMENT…] | zk set|create|delete PATH [DATA] [options]";

export const fenceCommand = defineCommand({
  name: "fence",
  summary: "run a command or write to ZooKeeper, unless the lock was granted to another holder since",
  usage,
  details: [
    "Each grant of a lock has a higher fencing token than the one before. The store is a file with the highest " +
    "token so far. baton fence run does not run a command with a lower token (exit 86): its lock was granted to " +
    "another holder since, for example while its machine was suspended. The store is held while the command runs, " +
    "so no process with a newer token runs at the same time. This is also true if baton is killed, as long as the " +
    "command and processes with its descriptors run.",
    "All programs that write the protected data must use the store. Its file system must support flock(2).",
    "baton fence zk writes a ZooKeeper node on the servers of the lock, with a path in the same chroot. One " +
    "transaction checks the holder of the lock and writes, so a process that no longer holds the lock cannot write " +
    "(exit 86), even if it was suspended for an hour. It needs no store, and other writers need no support for it. " +
    "The data is DATA, standard input (-), or --data-file. Nodes are persistent. The exit code is 1 if a condition " +
    "is not met: the node does not exist, exists already, has children, or has another version.",
  ],
  examples: [
    [
      "baton lock nightly -- sh -c 'prepare; baton fence run --store /srv/db/fence -- ./write.sh'",
      "do not run write.sh if nightly was granted to another holder in the meantime",
    ],
    ["baton fence run --store ./fence --token 42 -- ./write.sh", "use a token from another source"],
    [
      "baton lock nightly -- sh -c './step1 && baton fence zk set /app/state step1-done && ./step2'",
      "only the holder of nightly can record the progress",
    ],
    [
      "./report | baton fence zk create -p /app/reports/today -",
      "read the data from standard input, and create /app/reports if necessary",
    ],
    ["baton fence zk create --sequential /app/log/entry- 'began'", "print a path such as /app/log/entry-0000000007"],
    ["baton fence zk delete /app/state --version 3", "delete the node only if it has not been changed since"],
  ],
  settings: fenceSettings,
  syntax: fenceCommandSyntax,
  completesFirst: { run: [], zk: ["set", "create", "delete"] },
  forms: fenceForms,
  run: fence,
});

async function fence(call: CommandCall<typeof fenceSettings>): Promise<ExitCode> {
  const [action = "", ...more] = call.names;
  if (action === "run") {
    refuseFlags(call, fenceForms.run.refuses, "zk");
    return await (await import("./fence_run.ts")).runFenceRun(call);
  }
  if (action === "zk") {
    refuseFlags(call, fenceForms.zk.refuses, "run");
    return await (await import("./fence_zk.ts")).runFenceZk(call);
  }
  const given = action === ""
    ? "but none was given"
    : `not "${[action, ...more].join(" ")}"${didYouMean(action, ["run", "zk"])}`;
  throw new BatonError(
    "USAGE",
    `baton fence takes run or zk, ${given}, as in: baton fence run --store FILE -- COMMAND, ` +
      "or baton fence zk set /app/state running",
  );
}

function refuseFlags({ sources, names }: CommandCall<typeof fenceSettings>, settings: SettingTable, of: string): void {
  const flag = findGivenFlag(settings, sources.flags);
  if (flag === null) return;
  throw new BatonError("USAGE", `${flag} is for baton fence ${of}, not for baton fence ${names[0]}`);
}

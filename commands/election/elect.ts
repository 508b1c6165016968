/** `baton elect`: its words. What it does is in run_elect.ts. */
import { type Call, defineCommand } from "../command.ts";
import { electCommandSettings, electOptionsOf } from "./elect_options.ts";
import type { ExitCode } from "../exit_codes.ts";
import { electDependencies, runElect } from "./run_elect.ts";

export const electCommand = defineCommand({
  name: "elect",
  summary: "run a command while leader",
  usage: "NAME --value VALUE [options] -- COMMAND [ARGUMENT…]",
  details: [
    "Campaigns, runs the command as soon as it leads, and stops it before anybody else can lead. When leadership is lost, " +
    "asked back (baton resign), or given up because --health fails, it campaigns again. A command that ends by itself " +
    "ends baton with its code, unless --restart says otherwise. A signal is passed on to the command; after TERM, INT and " +
    "QUIT there is no other campaign.",
    "Who leads is what baton leader prints, what baton forward connects to, and what --leader-file says: the leader's " +
    "--value.",
  ],
  examples: [
    ["baton elect echo --value $(hostname):9000 -- ./echo-server --port 9000", "one of many runs, the others wait"],
    [
      "baton elect db --value db1:5432 --health 'pg_isready -q' -- ./primary.sh",
      "another leads when the check fails three times",
    ],
    ["baton elect vip --value $(hostname) --restart never -- ./hold-address.sh", "one term: 79 when it is lost"],
    [
      "baton elect echo --value a:1 --priority foreground --preempt -- ./serve.sh",
      "leads whenever it can: a leader of worse priority steps down",
    ],
    [
      "baton elect echo --value a:1 --leader-file /run/echo.leader -- ./serve.sh",
      "the file names the leader, here and now",
    ],
  ],
  settings: electCommandSettings,
  completes: "elections",
  run: elect,
});

async function elect(call: Call<typeof electCommandSettings>): Promise<ExitCode> {
  return await runElect(electOptionsOf(call), call.io, electDependencies());
}

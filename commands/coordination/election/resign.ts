/** `baton resign`: asks the leader of an election to step down. */
import { printJson } from "../../../src/base/terminal/io.ts";
import { flagSetting, type SettingTable, toggleSetting } from "../../../src/base/config/setting.ts";
import { connectionSettings } from "../../../src/coordination/settings/coordination_settings.ts";
import { durationType, textType } from "../../../src/base/config/value_types.ts";
import { BatonError } from "../../../src/base/errors.ts";
import { nameOfHolder } from "../../../src/coordination/nodes/holder_info.ts";
import { resign } from "../../../src/coordination/election/campaign.ts";
import { formatDuration } from "../../../src/base/support/duration.ts";
import { ownUserName } from "../../../src/base/support/user_name.ts";
import { defineCommand } from "../../command.ts";
import { runInCoordinationSession } from "../../coordination_session.ts";
import { exitCodes } from "../../../src/base/exit_codes.ts";
import type { ResignJson } from "../../json_shapes/election_shapes.ts";
import { requireOneName } from "../../name_arguments.ts";

const settings = {
  wait: flagSetting("-w, --wait", durationType(), {
    aliases: "--timeout",
    help: "maximum time to wait until the leader has stepped down; 0s: do not wait",
    default: 10_000,
  }),
  reason: flagSetting("--reason", textType("text"), { help: "reason, which the leader's baton prints" }),
  json: toggleSetting("--json", { help: "print one JSON object" }),
  ...connectionSettings,
} satisfies SettingTable;

export const resignCommand = defineCommand({
  name: "resign",
  summary: "ask the leader of an election to step down",
  usage: "NAME [options]",
  details: [
    "Asks the leader to step down: the leader's baton stops its command and lets the next candidate lead. It is a " +
    "candidate again after one second; with --restart never it exits with 80. This command waits until the leader " +
    "has stepped down, and exits with 1 if there is no leader, with 75 if the leader has not stepped down within " +
    "--wait.",
  ],
  examples: [
    ["baton resign echo", "the next candidate leads"],
    ["baton resign echo --reason 'upgrade of db1' -w 1m", "the leader's baton prints the reason on stderr"],
  ],
  settings,
  completes: "elections",
  runsNothing: true,
  async run(call) {
    const { values, io } = call;
    const name = requireOneName("resign", call.names, "election");
    const revocation = { by: ownUserName(), reason: values.reason ?? "" };
    const options = { root: values.root, waitMs: values.wait, revocation };
    const { holder, outcome } = await runInCoordinationSession(call, (zk) => resign(zk, name, options));
    const { holderId: id, value = "", host, pid, user } = holder;
    const resigned = outcome === "released";
    if (values.json) {
      printJson<ResignJson>(io, { version: 1, name, resigned, leader: { id, value, host, pid, user } });
    }
    if (!resigned && values.wait > 0) {
      throw new BatonError(
        "LOCK_TIMEOUT",
        `${nameOfHolder(holder)} was asked to step down as leader of "${name}" and has not done so within ${
          formatDuration(values.wait)
        }; it may still be stopping its command`,
      );
    }
    if (!values.quiet && resigned) io.err(`baton: ${nameOfHolder(holder)} has stepped down as leader of "${name}"\n`);
    return exitCodes.SUCCESS;
  },
});

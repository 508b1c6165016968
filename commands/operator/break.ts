/** `baton break`: asks a holder to release its lock, or takes the lock by force. */
import { printJson } from "../../src/terminal/io.ts";
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { connectionSettings } from "../../src/config/settings.ts";
import { choiceType, durationType, textType, toggleType } from "../../src/config/value_types.ts";
import { BatonError } from "../../src/errors.ts";
import { breakInteropLock } from "../../src/coordination/interop/break_interop_lock.ts";
import { interopRecipes } from "../../src/coordination/interop/interop_node_names.ts";
import { interopPath } from "../../src/coordination/interop/interop_path.ts";
import { breakLock } from "../../src/coordination/lock/break_lock.ts";
import { nameOfHolder } from "../../src/coordination/holder_info.ts";
import { formatDuration } from "../../src/support/duration.ts";
import { userName } from "../../src/support/user_name.ts";
import { defineCommand } from "../command.ts";
import { runConnected } from "../coordination/connected.ts";
import { exitCodes } from "../exit_codes.ts";
import type { BreakJson } from "../json_shapes/lock_shapes.ts";
import { onlyName } from "./name_arguments.ts";

const settings = {
  holder: setting(textType("id"), {
    flag: "--holder",
    once: true,
    help: "id of the holder, as baton who shows it, or its first characters",
  }),
  wait: setting(durationType(), {
    flag: "-w, --wait",
    help: "maximum time to wait for the release; 0s: do not wait",
    default: 10_000,
  }),
  force: setting(toggleType(), {
    flag: "--force",
    help: "take the lock if the holder has not released it within its session timeout; its command may still run",
    default: false,
  }),
  recipe: setting(choiceType(interopRecipes), {
    flag: "--recipe",
    help: "a lock of Curator or kazoo programs; NAME is the path of its node",
  }),
  reason: setting(textType("text"), { flag: "--reason", help: "reason, which the holder's baton prints" }),
  json: setting(toggleType(), { flag: "--json", help: "print one JSON object", default: false }),
  ...connectionSettings,
} satisfies SettingTable;

export const breakCommand = defineCommand({
  name: "break",
  summary: "ask a holder to release its lock, or take it by force",
  usage: "NAME --holder ID [options]",
  details: [
    "Asks the holder to release the lock: its baton stops the command, releases the lock and exits with 80. The id makes sure " +
    "that no other holder is affected. Exits with 75 if the lock was not released within --wait, with 1 if there is no such " +
    "holder.",
    "With --recipe, a baton is asked in the same way. A Curator program is asked as Curator's Revoker does, and reacts if it " +
    "made its lock revocable. A kazoo program cannot be asked (78), only forced. The session timeout of another program is " +
    "unknown: --force then waits for the --session-timeout of this call.",
  ],
  examples: [
    ["baton break nightly --holder 3f2a", "ask the holder whose id starts with 3f2a, and wait for the release"],
    ["baton break nightly --holder 3f2a --force", "take the lock if the holder does not react"],
    ["baton break --recipe curator /app/locks/nightly --holder 3f2a", "a lock that Curator programs use too"],
  ],
  settings,
  completes: "locks",
  runsNothing: true,
  async run(call) {
    const { values, io } = call;
    const name = onlyName("break", call.names);
    const { holder: holderId, reason = "" } = values;
    if (holderId === undefined) {
      throw new BatonError("USAGE", `baton break needs --holder ID; baton who ${name} shows the ids`);
    }
    const revocation = { by: userName(), reason };
    const { recipe } = values;
    if (recipe !== undefined) interopPath(name); // throws for an invalid path
    const options = { force: values.force, waitMs: values.wait, revocation };
    const { holder, outcome } = await runConnected(
      call,
      (zk) =>
        recipe === undefined
          ? breakLock(zk, name, holderId, { ...options, root: values.root })
          : breakInteropLock(zk, name, holderId, { ...options, recipe }),
    );
    if (values.json) {
      const { holderId: id, host, pid, user } = holder;
      printJson<BreakJson>(io, { version: 1, name, outcome, holder: { id, host, pid, user } });
    }
    const who = nameOfHolder(holder);
    switch (outcome) {
      case "released":
        if (!values.quiet) io.err(`baton: ${who} has released "${name}"\n`);
        return exitCodes.SUCCESS;
      case "deleted":
        io.err(`baton: "${name}" was taken from ${who}, which did not release it; its command may still run\n`);
        return exitCodes.SUCCESS;
      case "asked":
        if (values.wait === 0) return exitCodes.SUCCESS;
        throw new BatonError(
          "LOCK_TIMEOUT",
          `${who} was asked to release "${name}" and has not done so within ${
            formatDuration(values.wait)
          }; it may still be ` +
            "stopping its command. Use --force to take the lock anyway",
        );
    }
  },
});

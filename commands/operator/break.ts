/** `baton break`: takes a lock back from its holder. */
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { connectionSettings } from "../../src/config/settings.ts";
import { choice, duration, text, toggle } from "../../src/config/value_types.ts";
import { BatonError } from "../../src/errors.ts";
import { breakInteropLock } from "../../src/coordination/interop/break_interop_lock.ts";
import { interopRecipes } from "../../src/coordination/interop/interop_node_names.ts";
import { interopPath } from "../../src/coordination/interop/interop_path.ts";
import { breakLock } from "../../src/coordination/lock/break_lock.ts";
import { nameOfHolder } from "../../src/coordination/holder_info.ts";
import { formatDuration } from "../../src/support/duration.ts";
import { userName } from "../../src/support/user_name.ts";
import { defineCommand } from "../command.ts";
import { connected } from "../coordination/connected.ts";
import { exitCodes } from "../exit_codes.ts";
import type { BreakJson } from "../json_shapes/lock_shapes.ts";
import { onlyName } from "./name_arguments.ts";

const settings = {
  holder: setting(text("id"), {
    flag: "--holder",
    once: true,
    help: "whom to take it from, as baton who shows it; its beginning will do",
  }),
  wait: setting(duration(), {
    flag: "-w, --wait",
    help: "how long to wait for the holder to give it back; 0s only asks",
    default: 10_000,
  }),
  force: setting(toggle(), {
    flag: "--force",
    help: "when the holder has not given it back within its session timeout, take it: the old job may still run",
    default: false,
  }),
  recipe: setting(choice(interopRecipes), {
    flag: "--recipe",
    help: "a lock of Curator's or kazoo's; NAME is the path of its node",
  }),
  reason: setting(text("text"), { flag: "--reason", help: "why; the holder's baton prints it" }),
  json: setting(toggle(), { flag: "--json", help: "print one JSON object", default: false }),
  ...connectionSettings,
} satisfies SettingTable;

export const breakCommand = defineCommand({
  name: "break",
  summary: "take a lock back from its holder",
  usage: "NAME --holder ID [options]",
  details: [
    "Asks the holder to give the lock back: its baton stops the command, releases the lock and exits with 80. The id makes " +
    "sure that nobody else is hit. Exits with 75 when it was not given back within the wait, with 1 when there is no such " +
    "holder.",
    "With --recipe a baton that holds is asked in the same way, a program of Curator's as its Revoker asks, which it " +
    "heeds where it has made its lock revocable; one of kazoo's cannot be asked (78), only forced. How long the session of " +
    "another program lasts is not known: --force waits for this call's --session-timeout then.",
  ],
  examples: [
    ["baton break nightly --holder 3f2a", "ask the holder whose id begins so, and wait for the end of its command"],
    ["baton break nightly --holder 3f2a --force", "and take it when nothing happens"],
    ["baton break --recipe curator /app/locks/nightly --holder 3f2a", "a lock that Curator's programs take too"],
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
    if (recipe !== undefined) interopPath(name); // which refuses what cannot be one
    const options = { force: values.force, waitMs: values.wait, revocation };
    const { holder, outcome } = await connected(
      call,
      (zk) =>
        recipe === undefined
          ? breakLock(zk, name, holderId, { ...options, root: values.root })
          : breakInteropLock(zk, name, holderId, { ...options, recipe }),
    );
    if (values.json) {
      const { holderId: id, host, pid, user } = holder;
      const answer: BreakJson = { version: 1, name, outcome, holder: { id, host, pid, user } };
      io.out(JSON.stringify(answer) + "\n");
    }
    const who = nameOfHolder(holder);
    switch (outcome) {
      case "released":
        if (!values.quiet) io.err(`baton: ${who} has given "${name}" back\n`);
        return exitCodes.SUCCESS;
      case "deleted":
        io.err(`baton: "${name}" was taken from ${who}, which did not answer; its command may still run\n`);
        return exitCodes.SUCCESS;
      case "asked":
        if (values.wait === 0) return exitCodes.SUCCESS;
        throw new BatonError(
          "LOCK_TIMEOUT",
          `${who} was asked to give "${name}" back and has not done so within ${
            formatDuration(values.wait)
          }; it may be ` +
            "stopping its command still, and --force takes the lock all the same",
        );
    }
  },
});

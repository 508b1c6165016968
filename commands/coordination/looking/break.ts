/** `baton break`: asks a holder to release its lock, or takes the lock by force. */
import { type Io, printJson } from "../../../src/base/terminal/io.ts";
import { parseHeldLocks } from "../../../src/coordination/hold/hold_list.ts";
import { shellQuoteIfNeeded } from "../../../src/base/support/shell_quote.ts";
import { flagSetting, type SettingTable, toggleSetting } from "../../../src/base/config/setting.ts";
import { connectionSettings } from "../../../src/coordination/settings/coordination_settings.ts";
import { choiceType, durationType, textType } from "../../../src/base/config/value_types.ts";
import { BatonError } from "../../../src/base/errors.ts";
import { breakInteropLock } from "../../../src/coordination/interop/interop_status.ts";
import { interopLockPath, interopRecipes } from "../../../src/coordination/nodes/interop_node_names.ts";
import { breakLock } from "../../../src/coordination/lock/break_lock.ts";
import { nameOfHolder } from "../../../src/coordination/nodes/holder_info.ts";
import {
  findObjectKinds,
  type ObjectDetailsOptions,
  readObjectDetails,
} from "../../../src/coordination/admin/object_details.ts";
import type { HolderRow } from "../../../src/base/rows/object_row.ts";
import { nameOfHolderRow } from "../../../src/coordination/nodes/participant_row.ts";
import { formatDuration } from "../../../src/base/support/duration.ts";
import { printable } from "../../../src/base/support/text.ts";
import { ownUserName } from "../../../src/base/support/user_name.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { defineCommand } from "../../command.ts";
import { runInCoordinationSession } from "../../coordination_session.ts";
import { exitCodes } from "../../../src/base/exit_codes.ts";
import { outerHolderIds } from "../../../src/coordination/job/outer_locks.ts";
import type { BreakJson } from "../../json_shapes/lock_shapes.ts";
import { describeOtherKindsWithName, requireOneName } from "../../name_arguments.ts";
import { shortenHolderIds } from "../../../src/base/support/short_ids.ts";

const settings = {
  holder: flagSetting("--holder", textType("id"), {
    once: true,
    help: "id of the holder, as baton who shows it, or at least 4 of its first characters",
    unset: "the only holder",
  }),
  wait: flagSetting("-w, --wait", durationType(), {
    aliases: "--timeout",
    help: "maximum time to wait for the release; 0s: do not wait",
    default: 10_000,
  }),
  force: toggleSetting("--force", {
    help: "take the lock if the holder has not released it within its session timeout; its command may still run",
  }),
  recipe: flagSetting("--recipe", choiceType(interopRecipes), {
    basic: false,
    help: "a lock of Curator or kazoo programs; NAME is the path of its node",
  }),
  reason: flagSetting("--reason", textType("text"), { help: "reason, which the holder's baton prints" }),
  json: toggleSetting("--json", { help: "print one JSON object" }),
  ...connectionSettings,
} satisfies SettingTable;

const idCharactersMin = 4;

export const breakCommand = defineCommand({
  name: "break",
  summary: "ask a holder to release its lock, or take it by force",
  usage: "NAME [options]",
  details: [
    "Asks the holder to release the lock: its baton stops the command, releases the lock and exits with 80. If " +
    "there are several holders, it prints them and asks none (64); --holder chooses one. With --holder, no other " +
    "holder is affected, even if the lock was granted again. Exits with 75 if the lock was not released " +
    "within --wait, with 1 if there is no such holder. Without --holder it refuses to stop the script or command " +
    "that it runs in (64).",
    "With --recipe, a baton is asked in the same way. A Curator program is asked as Curator's Revoker does, and " +
    "reacts if it made its lock revocable. A kazoo program cannot be asked (78), only forced. The session timeout " +
    "of another program is unknown: --force then waits for the --session-timeout of this call.",
  ],
  examples: [
    ["baton break nightly", "ask the holder, and wait for the release"],
    ["baton break gpu --holder 3f2a", "ask the one of several holders whose id starts with 3f2a"],
    ["baton break nightly --force", "take the lock if the holder does not react"],
    ["baton break --recipe curator /app/locks/nightly", "a lock that Curator programs use too"],
  ],
  settings,
  completes: "locks",
  runsNothing: true,
  async run(call) {
    const { values, io } = call;
    const name = requireOneName("break", call.names);
    const { root, recipe, reason = "" } = values;
    const revocation = { by: ownUserName(), reason };
    if (recipe !== undefined) interopLockPath(name); // throws for an invalid path
    const options = { force: values.force, waitMs: values.wait, revocation };
    if (values.holder !== undefined) refuseShortId(values.holder);
    const { holder, outcome } = await runInCoordinationSession(call, async (zk) => {
      const holderId = values.holder ?? await onlyHolderId(zk, { kind: "lock", name, root, recipe });
      if (values.holder === undefined) refuseOwnLock(name, holderId, io.env);
      return recipe === undefined
        ? await breakLock(zk, name, holderId, { ...options, root })
        : await breakInteropLock(zk, name, holderId, { ...options, recipe });
    });
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

/** Throws USAGE if the ID is so short that the ID of a later holder might begin with it. */
function refuseShortId(id: string): void {
  if (id.length >= idCharactersMin) return;
  throw new BatonError(
    "USAGE",
    `--holder ${id}: at least ${idCharactersMin} characters of the id are needed, as baton who shows it`,
  );
}

/** Returns the ID of the only holder. Throws NOT_FOUND if there is none, or USAGE if there are several. */
async function onlyHolderId(zk: ZooKeeper, lock: ObjectDetailsOptions & { readonly root: string }): Promise<string> {
  const { name, recipe, root } = lock;
  const { holders } = await readObjectDetails(zk, lock);
  const [holder] = holders;
  if (holder === undefined) {
    const commands = { election: "resign" };
    const other = recipe === undefined
      ? describeOtherKindsWithName(await findObjectKinds(zk, name, root), { ...lock, commands })
      : "";
    throw new BatonError("NOT_FOUND", `Cannot break lock "${name}": no process holds it${other}`);
  }
  if (holders.length === 1 && holder.id !== null) return holder.id;
  const ids = shortenHolderIds(holders.flatMap(({ id }) => id ?? []));
  const choices = holders.map((one) => `\n  --holder ${ids.get(one.id ?? "")}  ${describeChoice(one, Date.now())}`)
    .join("");
  const what = `Lock "${name}" has ${holders.length} holders`;
  throw new BatonError("USAGE", `${what}; run the same command with one of these options:${choices}`);
}

/** Throws USAGE if the script or command around this call holds the lock: `baton break` would stop it. */
function refuseOwnLock(name: string, id: string, env: Io["env"]): void {
  if (!outerHolderIds(env).includes(id)) return;
  const isHold = parseHeldLocks(env["BATON_HOLD"]).some(({ ids }) => ids.includes(id));
  const ending = isHold
    ? `this script or shell, which would be stopped; release it with: baton release ${shellQuoteIfNeeded(name)}`
    : "the command that runs this one, which would be stopped; end that command instead";
  throw new BatonError("USAGE", `"${name}" is held by ${ending}; or break it with --holder ${id.slice(0, 8)}`);
}

function describeChoice(holder: HolderRow, nowMs: number): string {
  const { since: began } = holder;
  const since = began === null ? "" : `, for ${formatDuration(Math.max(0, nowMs - Date.parse(began)))}`;
  return `${nameOfHolderRow(holder)}${since}${holder.reason === "" ? "" : `, reason "${printable(holder.reason)}"`}`;
}

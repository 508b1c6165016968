/** `baton leader`: prints the leader of an election, once or after every change. */
import { printJson } from "../../../src/base/terminal/io.ts";
import { flagSetting, type SettingTable, toggleSetting } from "../../../src/base/config/setting.ts";
import { connectionSettings } from "../../../src/coordination/settings/coordination_settings.ts";
import { waitTimeType } from "../../../src/base/config/value_types.ts";
import { BatonError } from "../../../src/base/errors.ts";
import type { Grant, LeaderChange } from "../../../src/coordination/election/election_history.ts";
import { type LeaderStatus, readLeaderStatus } from "../../../src/coordination/election/leader_status.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { WaitTimeout } from "../../../src/base/support/deadline.ts";
import { formatDuration } from "../../../src/base/support/duration.ts";
import { findObjectKinds } from "../../../src/coordination/admin/object_details.ts";
import { describeOtherKindsWithName, requireOneName } from "../../name_arguments.ts";
import { type CommandCall, defineCommand } from "../../command.ts";
import { runInCoordinationSession } from "../../coordination_session.ts";
import { connectAndWaitDeadline, waitIncludesConnecting } from "../../../src/coordination/connect/command_session.ts";
import { type ExitCode, exitCodes } from "../../../src/base/exit_codes.ts";
import { followLeader } from "./follow_leader.ts";
import type { LeaderJson, LeaderLineJson } from "../../json_shapes/election_shapes.ts";
import { printable } from "../../../src/base/support/text.ts";

const settings = {
  json: toggleSetting("--json", { help: "print one JSON object" }),
  wait: flagSetting("-w, --wait", waitTimeType(), {
    aliases: "--timeout",
    help: "wait for a leader, at most this long or `forever`, connecting included; then exit 75, or 69 if no server " +
      "responds",
    unset: "do not wait",
  }),
  watch: toggleSetting("--watch", {
    help: "print one JSON line now and after every change, until stopped",
  }),
  ...connectionSettings,
} satisfies SettingTable;

export const leaderCommand = defineCommand({
  name: "leader",
  summary: "print the leader of an election",
  usage: "NAME [options]",
  details: [
    "Prints the leader's value and exits with 0, or exits with 1 if there is no leader.",
    "With --watch it prints one line for each leader, " +
    '{"version":1,"index":7,"token":"42","value":"db1:5432","since":"…","id":"…"}, where index counts the leaders, ' +
    'and {"version":1,"vacant":true} while there is none. It misses no leader over lost connections and sessions, ' +
    'up to 64 in a row; it reports more as {"version":1,"missed":9}. Two ' +
    "leaders may follow each other without a vacant line between them.",
  ],
  examples: [
    ["baton leader echo", "print host:port of the leader; exit 1 if there is none"],
    ["baton leader -w 10s echo", "wait for a leader, at most ten seconds"],
    ["baton leader echo --watch", "print a line for every change"],
  ],
  settings,
  completes: "elections",
  runsNothing: true,
  async run(call) {
    const name = requireOneName("leader", call.names, "election");
    const { values } = call;
    if (values.watch) {
      if (values.wait !== undefined) {
        throw new BatonError("USAGE", "--watch and --wait cannot be used together");
      }
      return await printChanges(call, name);
    }
    return values.wait !== undefined ? await waitForLeader(call, name) : await printLeader(call, name);
  },
});

type LeaderCall = CommandCall<typeof settings>;

async function printLeader(call: LeaderCall, name: string): Promise<ExitCode> {
  const { values, io } = call;
  const { root } = values;
  const isTold = !values.quiet && !values.json;
  const { status, also } = await runInCoordinationSession(call, async (zk) => {
    const status = await readLeaderStatus(zk, name, { root });
    const isUnused = status.leader === null && isTold;
    return {
      status,
      also: isUnused
        ? describeOtherKindsWithName(await findObjectKinds(zk, name, root), { kind: "election", name })
        : "",
    };
  });
  printStatus(call, status);
  if (status.leader !== null) return exitCodes.SUCCESS;
  if (isTold) io.err(`baton: "${name}" has no leader${also}\n`);
  return exitCodes.FALSE;
}

async function waitForLeader(call: LeaderCall, name: string): Promise<ExitCode> {
  const { values } = call;
  const waitMs = values.wait === Infinity ? undefined : values.wait;
  using limit = connectAndWaitDeadline(systemClock(), waitMs, { values });
  const noLeader = () =>
    new BatonError("LOCK_TIMEOUT", `"${name}" had no leader within ${formatDuration(waitMs ?? 0)}`);
  let isVacant = false;
  try {
    const following = { signal: limit.signal, waitsForServer: waitIncludesConnecting(waitMs, values) };
    for await (const { change, path } of followLeader(call, name, following)) {
      isVacant = change.kind === "vacant";
      if (isVacant && waitMs === 0) throw noLeader();
      if (change.kind !== "elected") continue;
      printStatus(call, { name, path, leader: change.grant, history: [] });
      return exitCodes.SUCCESS;
    }
    throw limit.signal.reason;
  } catch (thrown) {
    throw isVacant && thrown instanceof WaitTimeout ? noLeader() : thrown;
  }
}

async function printChanges(call: LeaderCall, name: string): Promise<ExitCode> {
  for await (const { change } of followLeader(call, name)) {
    printJson(call.io, changeToJson(change));
    await call.io.written("stdout");
  }
  return exitCodes.SUCCESS;
}

function printStatus({ values, io }: LeaderCall, { name, path, leader }: LeaderStatus): void {
  if (values.json) {
    printJson<LeaderJson>(io, { version: 1, name, path, leader: leader && grantToJson(leader) });
  } else if (leader !== null) {
    io.out(`${io.stdoutIsTerminal ? printable(leader.value) : leader.value}\n`);
  }
}

function changeToJson(change: LeaderChange): LeaderLineJson {
  switch (change.kind) {
    case "elected":
      return { version: 1, ...grantToJson(change.grant) };
    case "vacant":
      return { version: 1, vacant: true };
    case "missed":
      return { version: 1, missed: change.count };
  }
}

function grantToJson({ index, token, value, sinceMs, id }: Grant) {
  return { index, token: token.toString(), value, since: new Date(sinceMs).toISOString(), id };
}

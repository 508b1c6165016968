/** `baton leader`: prints the leader of an election, once or after every change. */
import { printJson } from "../../src/terminal/io.ts";
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { connectionSettings } from "../../src/config/settings.ts";
import { duration, toggle } from "../../src/config/value_types.ts";
import { BatonError } from "../../src/errors.ts";
import type { Grant, LeaderChange } from "../../src/coordination/election/election_history.ts";
import { type LeaderStatus, leaderStatus } from "../../src/coordination/election/leader_status.ts";
import { systemClock } from "../../src/support/clock.ts";
import { WaitTimeout } from "../../src/support/deadline.ts";
import { formatDuration } from "../../src/support/duration.ts";
import { alsoUsed, onlyName } from "../operator/name_arguments.ts";
import { type Call, defineCommand } from "../command.ts";
import { connected } from "../coordination/connected.ts";
import { callLimit, waitsForServer } from "../../src/coordination/connect/command_session.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import { followLeader } from "./follow_leader.ts";
import type { LeaderJson, LeaderLineJson } from "../json_shapes/election_shapes.ts";

const settings = {
  json: setting(toggle(), { flag: "--json", help: "print one JSON object", default: false }),
  wait: setting(toggle(), { flag: "--wait", help: "wait until there is a leader", default: false }),
  waitLimit: setting(duration(), {
    flag: "-w, --wait-limit",
    help: "maximum time to wait for a leader, connecting included; then exit 75, or 69 if no server responds",
  }),
  watch: setting(toggle(), {
    flag: "--watch",
    help: "print one JSON line now and after every change, until stopped",
    default: false,
  }),
  ...connectionSettings,
} satisfies SettingTable;

export const leaderCommand = defineCommand({
  name: "leader",
  summary: "print the leader of an election",
  usage: "NAME [options]",
  details: [
    "Prints the leader's value and exits with 0, or exits with 1 if there is no leader.",
    'With --watch it prints one line for each leader, {"version":1,"index":7,"token":"42","value":"db1:5432",' +
    '"since":"…","id":"…"}, where index counts the leaders, and {"version":1,"vacant":true} while there is none. It misses ' +
    'no leader over lost connections and sessions, up to 64 in a row; it reports more as {"version":1,"missed":9}. Two ' +
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
    const name = onlyName("leader", call.names, "election");
    const { values } = call;
    if (values.watch) {
      if (values.wait || values.waitLimit !== undefined) {
        throw new BatonError("USAGE", "--watch and --wait do not go together");
      }
      return await watch(call, name);
    }
    return values.wait || values.waitLimit !== undefined ? await wait(call, name) : await look(call, name);
  },
});

type LeaderCall = Call<typeof settings>;

async function look(call: LeaderCall, name: string): Promise<ExitCode> {
  const { values, io } = call;
  const { root } = values;
  const isTold = !values.quiet && !values.json;
  const { status, also } = await connected(call, async (zk) => {
    const status = await leaderStatus(zk, name, { root });
    const isUnused = status.leader === null && isTold;
    return { status, also: isUnused ? await alsoUsed(zk, { kind: "election", name, root }) : "" };
  });
  print(call, status);
  if (status.leader !== null) return exitCodes.SUCCESS;
  if (isTold) io.err(`baton: "${name}" has no leader${also}\n`);
  return exitCodes.FALSE;
}

async function wait(call: LeaderCall, name: string): Promise<ExitCode> {
  const { values } = call;
  const { waitLimit: waitMs } = values;
  const limit = callLimit(systemClock(), waitMs, { values });
  const noLeader = () =>
    new BatonError("LOCK_TIMEOUT", `"${name}" had no leader within ${formatDuration(waitMs ?? 0)}`);
  let isVacant = false;
  try {
    const following = { signal: limit.signal, waitsForServer: waitsForServer(waitMs, values) };
    for await (const { change, path } of followLeader(call, name, following)) {
      isVacant = change.kind === "vacant";
      if (isVacant && waitMs === 0) throw noLeader();
      if (change.kind !== "elected") continue;
      print(call, { name, path, leader: change.grant, history: [] });
      return exitCodes.SUCCESS;
    }
    throw limit.signal.reason;
  } catch (thrown) {
    throw isVacant && thrown instanceof WaitTimeout ? noLeader() : thrown;
  } finally {
    limit.cancel();
  }
}

async function watch(call: LeaderCall, name: string): Promise<ExitCode> {
  for await (const { change } of followLeader(call, name)) printJson(call.io, lineOf(change));
  return exitCodes.SUCCESS;
}

function print({ values, io }: LeaderCall, { name, path, leader }: LeaderStatus): void {
  if (values.json) {
    printJson<LeaderJson>(io, { version: 1, name, path, leader: leader && fieldsOf(leader) });
  } else if (leader !== null) {
    io.out(`${leader.value}\n`);
  }
}

function lineOf(change: LeaderChange): LeaderLineJson {
  switch (change.kind) {
    case "elected":
      return { version: 1, ...fieldsOf(change.grant) };
    case "vacant":
      return { version: 1, vacant: true };
    case "missed":
      return { version: 1, missed: change.count };
  }
}

function fieldsOf({ index, token, value, sinceMs, id }: Grant) {
  return { index, token: token.toString(), value, since: new Date(sinceMs).toISOString(), id };
}

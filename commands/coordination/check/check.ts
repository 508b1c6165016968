/** `baton check`: tells a command whether its lock is still held, and for how long it will at least be held. */
import { readLeaseNote } from "../../../src/base/process/supervise/read_lease_note.ts";
import { loadLibc } from "../../../src/base/process/libc.ts";
import { isPidNamespaceInsideJob } from "../../../src/base/process/proc/process_table.ts";
import { printJson } from "../../../src/base/terminal/io.ts";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { flagSetting, type SettingTable, toggleSetting } from "../../../src/base/config/setting.ts";
import { connectionSettings } from "../../../src/coordination/settings/coordination_settings.ts";
import { durationType } from "../../../src/base/config/value_types.ts";
import { BatonError } from "../../../src/base/errors.ts";
import { formatDuration } from "../../../src/base/support/duration.ts";
import { type CommandCall, defineCommand } from "../../command.ts";
import { readCoordinationServers } from "../../../src/coordination/connect/coordination_servers.ts";
import { type ExitCode, exitCodes } from "../../../src/base/exit_codes.ts";
import { type OuterLocks, requireOuterLocks } from "../../../src/coordination/job/outer_locks.ts";
import type { CheckJson } from "../../json_shapes/job_shapes.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { parseBarrierParticipantNode } from "../../../src/coordination/barrier/barrier_state.ts";
import { readInteropNodeGuid } from "../../../src/coordination/nodes/interop_node_names.ts";
import { parseHolderNode } from "../../../src/coordination/lock/lock_nodes.ts";
import { readAfterSync, readChildNames, readTwiceAtMost } from "../../../src/coordination/nodes/node_requests.ts";

const settings = {
  atLeast: flagSetting("--at-least", durationType(), {
    help: "exit 79 even if the lock is held, but certainly for this long or less only",
    default: 0,
  }),
  json: toggleSetting("--json", { help: "print one JSON object" }),
  ...connectionSettings,
} satisfies SettingTable;

export const checkCommand = defineCommand({
  name: "check",
  summary: "inside a command under a lock: check that the lock is still held, and for how long",
  usage: "[options]",
  details: [
    "Prints the milliseconds for which no other process can get the lock, even if the network fails, and " +
    "exits with 0; exits with 79 if the lock is lost. It asks the baton around the command, not a server. If that " +
    "is not possible, as on macOS and from another PID namespace (a container), it asks the server and prints " +
    "nothing; 0 then means that the lock was held at that moment.",
    "The time is extended while the servers respond. With --at-least 1s, a step that takes less than a second and " +
    "must not be done twice is safe; later writes need a fencing token (baton fence).",
  ],
  examples: [
    ["baton check || exit 1", "in a script under baton lock"],
    ["baton check --at-least 2s -q && mv new current", "only if the lock is held for two more seconds"],
  ],
  settings,
  runsNothing: true,
  run: check,
});

async function check(call: CommandCall<typeof settings>): Promise<ExitCode> {
  const { values, io } = call;
  if (call.names.length > 0) {
    throw new BatonError(
      "USAGE",
      `baton check takes no names, not "${call.names.join(" ")}": it checks the lock of the command that runs it`,
    );
  }
  const job = requireOuterLocks(io.env);
  const names = job.locks.map(({ name }) => name);
  const remainingMs = await remainingLeaseMs(io.env["BATON_LEASE"], job.ids.at(-1) ?? "");
  const isHeld = remainingMs === "unknown"
    ? values.atLeast === 0 && await isOnServer(call, job)
    : remainingMs > values.atLeast;
  const known = remainingMs === "unknown" ? null : Math.max(0, Math.floor(remainingMs));
  if (values.json) {
    printJson<CheckJson>(io, { version: 1, names, held: isHeld, remaining_ms: known });
  } else if (isHeld && known !== null && !values.quiet) io.out(`${known}\n`);
  if (isHeld) return exitCodes.SUCCESS;
  if (!values.quiet && !values.json) {
    const left = known === null || known === 0
      ? "is probably no longer held"
      : `is held for certain for ${formatDuration(known)}, less than the ${
        formatDuration(values.atLeast)
      } of --at-least`;
    io.err(`baton: "${names.join('", "')}" ${left}\n`);
  }
  return exitCodes.LOST;
}

/** Returns how much longer the lease certainly lasts, in milliseconds; 0 or less if the lock is lost. */
async function remainingLeaseMs(note: string | undefined, holderId: string): Promise<number | "unknown"> {
  const libc = await loadLibc();
  if (note === undefined || note === "" || libc === null) return "unknown";
  try {
    const endMs = readLeaseNote(note, holderId);
    if (endMs === null) return isPidNamespaceInsideJob(holderId) ? "unknown" : 0;
    return endMs - libc.bootTimeMs();
  } catch {
    return "unknown"; // another user owns the file
  }
}

/** Returns true if the servers have a holder node of this command for each of its locks. */
async function isOnServer(
  { values, sources }: CommandCall<typeof settings>,
  { locks, ids }: OuterLocks,
): Promise<boolean> {
  const { startServer: _starts, ...options } = readCoordinationServers(values, sources).connect;
  await using zk = await connectToZooKeeper(options);
  const held = await Promise.all(locks.map(({ path }) => isLockHeldByHolderIds(zk, path, ids)));
  return held.length > 0 && held.every(Boolean);
}

/**
 * Finds out whether a command still holds its lock, from the holder IDs in the command's environment. Returns true if
 * one of `ids` holds the lock, the leadership or the place at the barrier at `path`. Reads again if the connection is
 * lost.
 */
async function isLockHeldByHolderIds(zk: ZooKeeper, path: string, ids: readonly string[]): Promise<boolean> {
  const reading = () => Promise.all([readChildNames(zk, `${path}/h`), readChildNames(zk, path)]);
  const [holders, own] = await readTwiceAtMost(zk, () => readAfterSync(zk, path, reading));
  return holders.some((name) => ids.includes(parseHolderNode(name)?.guid ?? "")) ||
    own.some((name) =>
      ids.includes(parseBarrierParticipantNode(name)?.guid ?? "") ||
      // A contender of an interop lock holds the lock while its command runs.
      ids.includes(readInteropNodeGuid(name))
    );
}

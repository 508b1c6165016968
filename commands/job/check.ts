/** `baton check`: inside a job, whether its lock is still held, and for how long at least. */
import { readLeaseNote } from "../../src/process/supervise/lease_note.ts";
import { loadLibc } from "../../src/process/libc.ts";
import { isNamespaceOf } from "../../src/process/proc/process_table.ts";
import { connect } from "../../src/zookeeper/zookeeper_client.ts";
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { connectionSettings } from "../../src/config/settings.ts";
import { duration, toggle } from "../../src/config/value_types.ts";
import { BatonError } from "../../src/errors.ts";
import { ownHolder } from "../../src/coordination/admin/own_holder.ts";
import { formatDuration } from "../../src/support/duration.ts";
import { type Call, defineCommand } from "../command.ts";
import { coordinationOf } from "../../src/coordination/connect/coordination_servers.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import { demandHeldJob, type HeldJob } from "./held_job.ts";
import type { CheckJson } from "../json_shapes/job_shapes.ts";

const settings = {
  atLeast: setting(duration(), {
    flag: "--at-least",
    help: "exit 79 also when no more than this is left for certain",
    default: 0,
  }),
  json: setting(toggle(), { flag: "--json", help: "print one JSON object", default: false }),
  ...connectionSettings,
} satisfies SettingTable;

export const checkCommand = defineCommand({
  name: "check",
  summary: "inside a job: is its lock still held, and for how long at least",
  usage: "[options]",
  details: [
    "Prints the milliseconds for which nobody else can get the lock, whatever happens to the network, and exits with 0; with " +
    "79 when the lock is lost. It asks the baton that the job runs under, and no server: where that cannot be asked, as on " +
    "macOS and from another PID namespace (a container), it asks the server, prints nothing, and 0 means held at that moment.",
    "The time is renewed again and again while the servers answer. A job that is about to do what must not be done twice, and " +
    "that takes a second, is safe with --at-least 1s; what is written after that needs a fencing token (baton fence).",
  ],
  examples: [
    ["baton check || exit 1", "in a script under baton lock"],
    ["baton check --at-least 2s -q && mv new current", "only with two seconds to spare"],
  ],
  settings,
  runsNothing: true,
  run: check,
});

async function check(call: Call<typeof settings>): Promise<ExitCode> {
  const { values, io } = call;
  if (call.names.length > 0) {
    throw new BatonError(
      "USAGE",
      `baton check takes no names, it is about the job it runs in, but "${call.names.join(" ")}" is given`,
    );
  }
  const job = demandHeldJob(io.env, "baton check", "check");
  const names = job.locks.map(({ name }) => name);
  const remainingMs = await remaining(io.env["BATON_LEASE"], job.ids.at(-1) ?? "");
  const isHeld = remainingMs === "unknown"
    ? values.atLeast === 0 && await isOnServer(call, job)
    : remainingMs > values.atLeast;
  const known = remainingMs === "unknown" ? null : Math.max(0, Math.floor(remainingMs));
  if (values.json) {
    const answer: CheckJson = { version: 1, names, held: isHeld, remaining_ms: known };
    io.out(JSON.stringify(answer) + "\n");
  } else if (isHeld && known !== null && !values.quiet) io.out(`${known}\n`);
  if (isHeld) return exitCodes.SUCCESS;
  if (!values.quiet && !values.json) {
    const left = known === null || known === 0
      ? "is not held any more, as far as can be told"
      : `is held for ${formatDuration(known)} for certain, and ${formatDuration(values.atLeast)} is wanted`;
    io.err(`baton: "${names.join('", "')}" ${left}\n`);
  }
  return exitCodes.LOST;
}

/** Milliseconds; 0 or less when it is lost. */
async function remaining(note: string | undefined, holderId: string): Promise<number | "unknown"> {
  const libc = await loadLibc();
  if (note === undefined || note === "" || libc === null) return "unknown";
  try {
    const endMs = readLeaseNote(note, holderId);
    if (endMs === null) return isNamespaceOf(holderId) ? "unknown" : 0;
    return endMs - libc.bootTimeMs();
  } catch {
    return "unknown"; // another user's
  }
}

/** Whether every lock of the job has a holder's node of the job's. */
async function isOnServer({ values, sources }: Call<typeof settings>, { locks, ids }: HeldJob): Promise<boolean> {
  const { startServer: _starts, ...options } = coordinationOf(values, sources).connect;
  await using zk = await connect(options);
  const held = await Promise.all(locks.map(({ path }) => ownHolder(zk, path, ids)));
  return held.length > 0 && held.every((holder) => holder !== null);
}

/**
 * `baton release`: asks the holder process to release a lock, and waits until the servers have confirmed the release.
 */
import process from "node:process";
import { hasProcessTable, isPidNamespaceInsideJob, readProcess } from "../../../src/base/process/proc/process_table.ts";
import { findLocksHeldByAncestors } from "../../../src/coordination/hold/find_holds.ts";
import { type HeldLocks, parseHeldLocks } from "../../../src/coordination/hold/hold_list.ts";
import {
  type HolderReleaseResponse,
  isReleaseSocketUsable,
  parseReleaseSocketPath,
  requestRelease,
} from "../../../src/coordination/hold/release_socket.ts";
import type { Io } from "../../../src/base/terminal/io.ts";
import { flagSetting, type SettingTable, toggleSetting } from "../../../src/base/config/setting.ts";
import { durationType } from "../../../src/base/config/value_types.ts";
import { BatonError, type ErrorCode } from "../../../src/base/errors.ts";
import { formatDuration } from "../../../src/base/support/duration.ts";
import { type CommandCall, defineCommand } from "../../command.ts";
import { type ExitCode, exitCodes, toExitCode } from "../../../src/base/exit_codes.ts";
import { quotedNames } from "../../../src/coordination/job/leased_command.ts";

const settings = {
  stopProcesses: toggleSetting("--stop-processes", {
    help: "first stop the processes that were started under the lock and still run; kill them after --kill-after of " +
      "baton hold",
  }),
  wait: flagSetting("-w, --wait", durationType({ minMs: 1 }), {
    aliases: "--timeout",
    help: "how long to wait for the release; then exit 76",
    default: 60_000,
  }),
} satisfies SettingTable;

export const releaseCommand = defineCommand({
  name: "release",
  summary: "release a lock that baton hold has acquired",
  usage: "NAME… [options]",
  details: [
    "Use it in the script or shell that has evaluated the output of baton hold, or in a process below it; the " +
    "variables are not needed. Exits with 0 when the server has confirmed the release: another process may hold " +
    "the lock by then. Exits with 1 if the script does not hold the lock, with 79 when it was lost, " +
    "and with 80 when it was broken; in the last two cases the script is about to be stopped.",
    "Processes that were started under the lock and still run are listed on stderr, and continue without the lock; " +
    "--stop-processes stops them first. The script itself is never stopped. Its BATON_… variables stay as they " +
    "are, and baton check exits with 79 from then on.",
    "Locks that were acquired by one call are released by one call. Instead of a name, an id that baton who " +
    "prints is enough.",
  ],
  examples: [
    [
      'held=$(baton hold nightly --pid $$) || exit; eval "$held"; ./step1; ./step2; baton release nightly',
      "the rest of the script runs without the lock",
    ],
    [
      "trap 'baton release -q nightly || :' EXIT",
      "release it when the script ends, and leave its exit code as it is",
    ],
    ["baton release --stop-processes nightly", "no process that was started under the lock continues"],
  ],
  settings,
  runsNothing: true,
  run: release,
});

async function release(call: CommandCall<typeof settings>): Promise<ExitCode> {
  const { values, io } = call;
  const known = knownHolds(call.names, parseHeldLocks(io.env["BATON_HOLD"]));
  const names = call.names.map((name) => nameOf(name, known));
  const holds = findHolds(names, known);
  let exitCode: ExitCode = exitCodes.SUCCESS;
  for (const { name, hold } of holds) {
    const code = hold === null ? reportNotHeld(name, call) : await releaseOne(hold, call);
    if (exitCode === exitCodes.SUCCESS) exitCode = code;
  }
  if (values.verbose && exitCode === exitCodes.SUCCESS) io.err(`baton: ${quotedNames(names)} released\n`);
  return exitCode;
}

/**
 * Returns the holds that BATON_HOLD lists. If it does not contain one of the names, adds the holds of this process's
 * ancestors.
 */
function knownHolds(names: readonly string[], held: readonly HeldLocks[]): readonly HeldLocks[] {
  const isMissing = names.some((name) =>
    !held.some((one) => one.names.includes(name) && isReleaseSocketUsable(one.path))
  );
  if (!isMissing || !hasProcessTable()) return held;
  const found = findLocksHeldByAncestors(process.pid).filter(({ path }) => !held.some((one) => one.path === path));
  // A hold that has ended stays in the list, before the others, because it shows how the lock was lost.
  return [...held, ...found];
}

/** Returns the name of the lock whose holder ID begins with `text`; `text` itself if there is no such lock. */
function nameOf(text: string, held: readonly HeldLocks[]): string {
  if (!/^[0-9a-f]{6,}$/.test(text) || held.some(({ names }) => names.includes(text))) return text;
  const [name, ...others] = held.flatMap(({ names, ids }) => names.filter((_, at) => ids[at]?.startsWith(text)));
  return name === undefined || others.length > 0 ? text : name;
}

/**
 * Returns the latest hold of each name. Throws USAGE if several locks were acquired in one call, and only some of them
 * are named.
 */
function findHolds(names: readonly string[], held: readonly HeldLocks[]): { name: string; hold: HeldLocks | null }[] {
  if (names.length === 0) {
    throw new BatonError("USAGE", "baton release needs the name of a lock, as in: baton release NAME");
  }
  const found: { name: string; hold: HeldLocks | null }[] = [];
  for (const name of new Set(names)) {
    const hold = held.findLast((one) => one.names.includes(name)) ?? null;
    const missing = hold?.names.filter((one) => !names.includes(one)) ?? [];
    if (hold !== null && missing.length > 0 && isReleaseSocketUsable(hold.path)) {
      const all = hold.names.join(" ");
      throw new BatonError(
        "USAGE",
        `"${name}" was acquired together with ${quotedNames(missing)}: use baton release ${all}`,
      );
    }
    if (hold === null || missing.length > 0) found.push({ name, hold: null });
    else if (!found.some((other) => other.hold === hold)) found.push({ name, hold });
  }
  return found;
}

/**
 * Reports that no holder process was found. Throws REFUSED if a holder process may be alive outside this PID namespace.
 */
function reportNoHolder({ names, ids }: HeldLocks, call: CommandCall<typeof settings>): ExitCode {
  if (!isPidNamespaceInsideJob(ids[0])) return reportNotHeld(names.join(" "), call);
  throw new BatonError(
    "REFUSED",
    `Cannot release ${
      quotedNames(names)
    }: its holder process is outside this PID namespace. Release it where the script runs`,
  );
}

function reportNotHeld(name: string, { io, values }: CommandCall<typeof settings>): ExitCode {
  const why = "it was released before, or never acquired by baton hold";
  if (!values.quiet) io.err(`baton: "${name}" is not held by this script: ${why}\n`);
  return toExitCode("NOT_HELD");
}

async function releaseOne(hold: HeldLocks, call: CommandCall<typeof settings>): Promise<ExitCode> {
  const { io, values } = call;
  if (!isReleaseSocketUsable(hold.path)) return reportNoHolder(hold, call);
  const requester = { pid: process.pid, startTicks: readProcess(process.pid)?.startTicks ?? 0 };
  const request = { requester, stopsProcesses: values.stopProcesses };
  const response = await requestRelease(hold.path, request, { waitMs: values.wait });
  if (response === null) return reportNoHolder(hold, call);
  const holder = `its holder process (pid ${parseReleaseSocketPath(hold.path)?.holder.pid})`;
  const what = quotedNames(hold.names);
  if (response === "killed") throwError("LOCK_LOST", `Lock ${what} is lost: ${holder} was killed`);
  if (response === "late") {
    const time = formatDuration(values.wait);
    throwError(
      "OUTCOME_UNKNOWN",
      `Cannot tell whether ${what} was released: ${holder} has not responded within ${time}`,
    );
  }
  return reportResponse(response, hold, { io, quiet: values.quiet });
}

function reportResponse(
  response: HolderReleaseResponse,
  { names }: HeldLocks,
  { io, quiet }: { io: Io; quiet: boolean },
): ExitCode {
  const what = quotedNames(names);
  const processes = describeProcesses(response);
  switch (response.result) {
    case "released":
      if (processes !== "" && !quiet) {
        io.err(
          `baton: ${what} released; processes that were started under it still run: ${processes}. ` +
            "--stop-processes stops them first\n",
        );
      }
      return exitCodes.SUCCESS;
    case "not_stopped":
      return throwError("FENCE_BREACH", `Cannot release ${what}: these processes could not be stopped: ${processes}`);
    case "unknown":
      return throwError(
        "OUTCOME_UNKNOWN",
        `Cannot tell whether ${what} was released: no server has responded. ` +
          "If not, it is released when the session ends",
      );
    case "lost":
      return throwError("LOCK_LOST", `Lock ${what} was lost before it was released, and the script is being stopped`);
    case "revoked":
      return throwError("REVOKED", `Lock ${what} was broken before it was released, and the script is being stopped`);
    case "time_limit":
      return throwError("TIME_LIMIT", `Lock ${what} was held longer than --max-hold, and the script is being stopped`);
  }
}

function throwError(code: ErrorCode, message: string): never {
  throw new BatonError(code, message);
}

function describeProcesses({ running, more }: HolderReleaseResponse): string {
  const list = running.map(({ pid, command }) => `${pid} (${command})`).join(", ");
  return more > 0 ? `${list} and ${more} more` : list;
}

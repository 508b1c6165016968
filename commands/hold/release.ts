/** `baton release`: gives back what `baton hold` took, by asking the holder, and waits until the server has it. */
import process from "node:process";
import { isAlive, isNamespaceOf, readProcess } from "../../src/process/proc/process_table.ts";
import { sendSignal } from "../../src/process/proc/send_signal.ts";
import { type Held, parseHolds } from "../../src/process/hold/hold_list.ts";
import { type ReleaseAnswer, ReleaseDoor } from "../../src/process/hold/release_mailbox.ts";
import type { Io } from "../../src/terminal/io.ts";
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { duration, toggle } from "../../src/config/value_types.ts";
import { BatonError, type ErrorCode } from "../../src/errors.ts";
import { type Clock, systemClock } from "../../src/support/clock.ts";
import { formatDuration } from "../../src/support/duration.ts";
import { newGuid } from "../../src/support/guid.ts";
import { type Call, defineCommand } from "../command.ts";
import { type ExitCode, exitCodeOf, exitCodes } from "../exit_codes.ts";
import { quotedNames } from "../job/job.ts";

const settings = {
  sweep: setting(toggle(), {
    flag: "--sweep",
    help: "stop first what was started under the lock and still runs, and kill it after --kill-after of baton hold",
    default: false,
  }),
  wait: setting(duration({ minMs: 1 }), {
    flag: "-w, --wait",
    help: "how long to wait until the server has it; then exit 76",
    default: 60_000,
  }),
} satisfies SettingTable;

export const releaseCommand = defineCommand({
  name: "release",
  summary: "give back a lock that baton hold has taken",
  usage: "NAME… [options]",
  details: [
    "Inside a script that has evaluated what baton hold printed. Exits with 0 when the server has the lock back: somebody " +
    "else may have it by then. With 1 when the script does not hold it, or not any more; with 79 when it was lost, 80 when " +
    "it was taken back, and the script is about to be stopped.",
    "What was started under the lock and still runs is named on stderr and let be: it runs on without the lock. --sweep stops " +
    "it first. The script itself is never touched. Its BATON_… variables stay as they are, and baton check says 79 from now on.",
    "Several names that were taken by one call are given back by one call.",
  ],
  examples: [
    [
      'held=$(baton hold nightly --pid $$) || exit; eval "$held"; ./step1; ./step2; baton release nightly',
      "the rest of the script runs without the lock",
    ],
    [
      "trap 'baton release -q nightly' EXIT",
      "at the end in any case, a moment before the script's own end would do it",
    ],
    ["baton release --sweep nightly", "and nothing that was begun under the lock runs on"],
  ],
  settings,
  runsNothing: true,
  run: release,
});

/** Between two looks at the answer, in milliseconds. */
const lookEveryMs = 5;

async function release(call: Call<typeof settings>): Promise<ExitCode> {
  const { names, values, io } = call;
  const holds = holdsNamed(names, parseHolds(io.env["BATON_HOLD"]));
  let exitCode: ExitCode = exitCodes.SUCCESS;
  for (const { name, hold } of holds) {
    const code = hold === null ? notHeld(name, call) : await releaseOne(hold, call);
    if (exitCode === exitCodes.SUCCESS) exitCode = code;
  }
  if (values.verbose && exitCode === exitCodes.SUCCESS) io.err(`baton: ${quotedNames(names)} is released\n`);
  return exitCode;
}

/** The last that was taken, of each name. Throws USAGE for a part of what was taken together and is still held. */
function holdsNamed(names: readonly string[], held: readonly Held[]): { name: string; hold: Held | null }[] {
  if (names.length === 0) {
    throw new BatonError("USAGE", "baton release needs the name of a lock, as in: baton release NAME");
  }
  const found: { name: string; hold: Held | null }[] = [];
  for (const name of new Set(names)) {
    const hold = held.findLast((one) => one.names.includes(name)) ?? null;
    const missing = hold?.names.filter((one) => !names.includes(one)) ?? [];
    if (hold !== null && missing.length > 0 && isThere(hold)) {
      const all = hold.names.join(" ");
      throw new BatonError("USAGE", `"${name}" was taken together with ${quotedNames(missing)}: baton release ${all}`);
    }
    if (hold === null || missing.length > 0) found.push({ name, hold: null });
    else if (!found.some((other) => other.hold === hold)) found.push({ name, hold });
  }
  return found;
}

function isThere({ path, ids }: Held): boolean {
  using door = ReleaseDoor.open(path, ids[0]);
  return door !== null;
}

/** Rejects REFUSED where the holder may well be there. */
function gone({ names, ids }: Held, call: Call<typeof settings>): ExitCode {
  if (!isNamespaceOf(ids[0])) return notHeld(names.join(" "), call);
  const why = "it is outside of this PID namespace: release where the script runs";
  throw new BatonError("REFUSED", `The holder of ${quotedNames(names)} cannot be asked from here: ${why}`);
}

function notHeld(name: string, { io, values }: Call<typeof settings>): ExitCode {
  const why = io.env["BATON_HOLD"] === undefined
    ? 'BATON_HOLD is not set, which eval "$held" does after held=$(baton hold …)'
    : "it was released before, or never taken";
  if (!values.quiet) io.err(`baton: "${name}" is not held by this script: ${why}\n`);
  return exitCodeOf("NOT_HELD");
}

async function releaseOne(hold: Held, call: Call<typeof settings>): Promise<ExitCode> {
  const { io, values } = call;
  using door = ReleaseDoor.open(hold.path, hold.ids[0]);
  if (door === null) return gone(hold, call);
  const id = newGuid();
  const startTicks = readProcess(process.pid)?.startTicks ?? 0;
  door.ask({ id, asking: { pid: process.pid, startTicks }, sweeps: values.sweep });
  sendSignal(door.holderPid, "SIGCONT"); // it looks by itself ten times a second; this is faster
  const answer = await answerOf(door, id, { clock: systemClock(), waitMs: values.wait });
  if (answer === "late") {
    throw new BatonError(
      "OUTCOME_UNKNOWN",
      `Cannot tell whether ${
        quotedNames(hold.names)
      } was released: the holder (process ${door.holderPid}) has not answered ` +
        `within ${formatDuration(values.wait)}`,
    );
  }
  return answer === "gone"
    ? failed("LOCK_LOST", `Lock ${quotedNames(hold.names)} is lost: its holder (process ${door.holderPid}) was killed`)
    : tell(answer, hold, { io, quiet: values.quiet });
}

async function answerOf(
  door: ReleaseDoor,
  id: string,
  { clock, waitMs }: { readonly clock: Clock; readonly waitMs: number },
): Promise<ReleaseAnswer | "gone" | "late"> {
  const untilMs = clock.now() + waitMs;
  for (;;) {
    // Asked before the answer is read: one that has answered and ended has answered.
    const isGone = !isAlive(door.holderPid);
    const answer = door.answer();
    if (answer !== null && (answer.id === id || answer.result === "released")) return answer;
    if (isGone) return "gone";
    if (clock.now() >= untilMs) return "late";
    await new Promise<void>((resolve) => clock.after(lookEveryMs, resolve));
  }
}

function tell(answer: ReleaseAnswer, { names }: Held, { io, quiet }: { io: Io; quiet: boolean }): ExitCode {
  const what = quotedNames(names);
  const processes = listOf(answer);
  switch (answer.result) {
    case "released":
      if (processes !== "" && !quiet) {
        io.err(
          `baton: ${what} is released, and what was started under it runs on: ${processes}; --sweep ends it first\n`,
        );
      }
      return exitCodes.SUCCESS;
    case "unswept":
      return failed("FENCE_BREACH", `${what} is not released, because this could not be stopped: ${processes}`);
    case "unknown":
      return failed(
        "OUTCOME_UNKNOWN",
        `Cannot tell whether ${what} was given back: no server has answered. If not, it is free when the session has ended`,
      );
    case "lost":
      return failed("LOCK_LOST", `Lock ${what} was lost before it was released, and the script is being stopped`);
    case "revoked":
      return failed("REVOKED", `Lock ${what} was taken back before it was released, and the script is being stopped`);
    case "time_limit":
      return failed("TIME_LIMIT", `${what} was held for longer than --max-hold, and the script is being stopped`);
  }
}

function failed(code: ErrorCode, message: string): never {
  throw new BatonError(code, message);
}

function listOf({ running, more }: ReleaseAnswer): string {
  const list = running.map(({ pid, command }) => `${pid} (${command})`).join(", ");
  return more > 0 ? `${list} and ${more} more` : list;
}

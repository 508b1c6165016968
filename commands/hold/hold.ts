/** `baton hold`: a lock over several steps of a script. Starts the holder (holder.ts), waits for its word, and hands it on. */
import process from "node:process";
import { stdoutWasClosed } from "../../src/process/spawn/closed_stdin.ts";
import { expectEnd, type HelperProcess, startHelper } from "../../src/process/spawn/helper_process.ts";
import { holderMark } from "../../src/process/proc/service_process.ts";
import { processSignals } from "../../src/process/supervise/signal_source.ts";
import { type HolderMessage, type HolderRequest, stopLine, takenLine } from "../../src/process/hold/holder_messages.ts";
import { laterStderr } from "../../src/process/hold/later_stderr.ts";
import { shellLines } from "../../src/process/hold/shell_quote.ts";
import type { Io } from "../../src/terminal/io.ts";
import type { StatusReport } from "../../src/terminal/status_report.ts";
import { StopRequest } from "../../src/process/supervise/stopped_by_signal.ts";
import { WaitLine } from "../../src/terminal/progress_line.ts";
import { BatonError, messageOf } from "../../src/errors.ts";
import { abortable } from "../../src/support/abort.ts";
import { systemClock } from "../../src/support/clock.ts";
import { type Call, defineCommand } from "../command.ts";
import type { ExitCode } from "../exit_codes.ts";
import { type HoldOptions, holdOptionsOf, holdSettings } from "./hold_options.ts";
import { packed, type PackedLockOptions } from "./hold_request.ts";
import type { LockEnding } from "../job/lock_ending.ts";
import { reported, type ReportedEnd } from "../job/reported.ts";

export const holdCommand = defineCommand({
  name: "hold",
  summary: "hold a lock over several steps of a shell script",
  usage: "NAME… [options]",
  details: [
    "Waits for the lock and ends; the lock stays with the script. Prints export lines for eval: the variables that a " +
    "command under baton lock has. The lock is given back by baton release, and when the script's process is gone, in " +
    "whichever way; before that what it left running under the lock is stopped.",
    "Write it as in the examples. `held=$(…) || exit` ends the script when the lock was not got, with the code that baton lock " +
    "would have given. The lock is tied to the process that --pid names: $$ is the script, also in a subshell. Left out, it is " +
    "the shell that has started baton hold.",
    "When the lock is about to be lost (no server answers, somebody takes it back with baton break), the script, everything " +
    "below it and everything it started under the lock is told to stop, and killed before others can get the lock: also an " +
    "interactive shell. When baton itself is killed, they are killed within a second.",
  ],
  examples: [
    [
      `held=$(baton hold nightly -w 10s --pid $$) || exit; eval "$held"; ./step1; ./step2; baton release nightly`,
      "both steps under the lock",
    ],
    [`held=$(baton hold -n nightly --pid $$) || exit 0; eval "$held"`, "another one is at it: nothing to do"],
    [`held=$(baton hold -s data --pid $$) || exit; eval "$held"`, "shared: together with other readers"],
    [`baton check --at-least 5s || exit`, "between two steps: is it still held, and for how long at least"],
  ],
  settings: holdSettings,
  completes: "locks",
  isEvaluated: true,
  run: hold,
});

/** How long a holder that was told to stop may take to leave the queue, in milliseconds. */
const leaveMsMax = 950;

interface Progress {
  tokens: readonly string[] | null;
  waitedMs: number | null;
}

async function hold(call: Call<typeof holdSettings>): Promise<ExitCode> {
  const options = holdOptionsOf(call);
  if (stdoutWasClosed()) {
    const why = 'stdout was closed when baton was started; held=$(baton hold …), then eval "$held"';
    throw new BatonError("IO", `Nobody would learn of the lock: ${why}`);
  }
  const progress: Progress = { tokens: null, waitedMs: null };
  return await reported({
    ...options,
    io: call.io,
    conflicts: ["LOCK_BUSY", "LOCK_TIMEOUT"],
    reportOf: (end) => reportOf(options, progress, end),
  }, () => holdFor(options, call.io, progress));
}

async function holdFor(options: HoldOptions, io: Io, progress: Progress): Promise<LockEnding> {
  using stop = new StopRequest(processSignals());
  const word = Promise.withResolvers<LockEnding>();
  const helper = await start(options, (message) => {
    if (message.kind === "says") return io.err(message.text);
    if (message.kind === "failed") return word.reject(new BatonError(message.code, message.message));
    if (message.kind === "ended") return word.resolve(message.ending);
    progress.tokens = message.tokens;
    progress.waitedMs = message.waitedMs;
    handOver(message.variables, io, helper).then(
      () => word.resolve({ exitCode: 0, reason: "held", message: null }),
      word.reject,
    );
  });
  helper.ended.then(() => {
    word.reject(new BatonError("START_FAILED", "The holder process has ended without a word: the lock is not held"));
  });
  await helper.send(JSON.stringify(requestOf(options, io)) + "\n");
  try {
    const ending = await abortable(word.promise, stop.signal);
    if (progress.tokens === null) expectEnd(helper.pid); // it has said its last word
    return ending;
  } catch (thrown) {
    await leave(helper);
    throw thrown;
  }
}

async function start(
  options: HoldOptions,
  hear: (message: HolderMessage<LockEnding>) => void,
): Promise<HelperProcess> {
  const { BATON_LOCK_COOKIE: _cookie, ...env } = process.env as Record<string, string>;
  const stderr = laterStderr(options.script.pid);
  try {
    return await startHelper({
      words: ["__holder", ...options.names],
      argv0: "lock-holder",
      env: { ...env, [holderMark]: "1" },
      ...(stderr === undefined ? {} : { stderr }),
      isWaitedFor: true,
    }, (line) => hear(JSON.parse(line) as HolderMessage<LockEnding>));
  } catch (error) {
    throw new BatonError("START_FAILED", `Cannot start the holder process: ${messageOf(error)}`, { cause: error });
  }
}

function requestOf(options: HoldOptions, io: Io): HolderRequest<PackedLockOptions> {
  return {
    options: packed(options),
    script: options.script,
    env: { BATON_LOCK_COOKIE: io.env["BATON_LOCK_COOKIE"] ?? "" },
    columns: WaitLine.fits(io) ? io.columns : null,
  };
}

/** The script can read it before the holder knows that it was told: the holder has been at its post since before. */
async function handOver(
  variables: Readonly<Record<string, string | null>>,
  io: Io,
  helper: HelperProcess,
): Promise<void> {
  const entries = Object.entries(variables).map(([name, value]) => [name, value ?? undefined] as const);
  io.out(shellLines(Object.fromEntries(entries), io.env));
  await helper.send(takenLine);
}

async function leave(helper: HelperProcess): Promise<void> {
  await helper.send(stopLine);
  let cancel = () => {};
  const tooLate = new Promise<void>((resolve) => cancel = systemClock().after(leaveMsMax, resolve));
  await Promise.race([helper.ended, tooLate]);
  cancel();
}

function reportOf({ names }: HoldOptions, { tokens, waitedMs }: Progress, end: ReportedEnd): StatusReport {
  return {
    version: 1,
    command: "hold",
    names,
    ...end,
    command_status: null,
    fencing_tokens: tokens,
    waited_ms: waitedMs === null ? null : Math.round(waitedMs),
    held_ms: null,
  };
}

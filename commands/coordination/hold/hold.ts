/**
 * `baton hold`: holds a lock across several steps of a script. Starts the holder process (holder.ts) and prints the
 * variables that it sends.
 */
import { constants, fstatSync, openSync, statSync } from "node:fs";
import { constants as osConstants } from "node:os";
import process from "node:process";
import { wasStreamClosedAtStart } from "../../../src/base/process/spawn/inherited_descriptors.ts";
import {
  type HelperProcess,
  markHelperEnding,
  startHelperProcess,
} from "../../../src/base/process/spawn/helper_process.ts";
import { holderProcessVariable } from "../../../src/base/process/proc/process_table.ts";
import { StoppedBySignal, StopRequestListener } from "../../../src/base/process/supervise/signal_source.ts";
import { holderProcessCommand, holderProcessName } from "../../../src/coordination/hold/find_holds.ts";
import {
  holderConfirmedLine,
  type HolderMessage,
  type HolderRequest,
  holderStopLine,
} from "../../../src/coordination/hold/holder_pipe.ts";
import { failingShellLine, shellExportLines, shellQuoteIfNeeded } from "../../../src/base/support/shell_quote.ts";
import type { Io } from "../../../src/base/terminal/io.ts";
import { isTerminal } from "../../../src/base/terminal/output_writer.ts";
import { ErasableTerminalLine } from "../../../src/base/terminal/progress_line.ts";
import { BatonError, errorMessage } from "../../../src/base/errors.ts";
import { rejectOnAbort } from "../../../src/base/support/abort.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { isSameFile } from "../../../src/base/support/one_file.ts";
import { type CommandCall, defineCommand } from "../../command.ts";
import { type ExitCode, exitCodes, toExitCode } from "../../../src/base/exit_codes.ts";
import {
  type HoldOptions,
  holdSettings,
  type PackedLockOptions,
  packLockOptions,
  readHoldOptions,
} from "./hold_options.ts";
import type { LockEnding } from "../../../src/coordination/job/lock_ending.ts";
import { runWithStatusReport, StatusReportFacts } from "../../../src/coordination/job/run_with_status_report.ts";

export const holdCommand = defineCommand({
  name: "hold",
  summary: "hold a lock over several steps of a shell script",
  usage: "NAME… [options]",
  details: [
    "Waits for the lock and ends; the script then holds the lock. Prints export lines for eval: the variables that " +
    "baton lock sets for its command. baton release releases the lock, and so does any end of the script's " +
    "process; processes that it started under the lock and left running are stopped first.",
    "Use it as in the examples. `held=$(…) || exit` ends the script when the lock was not acquired, with the exit " +
    "code of baton lock. --pid names the process that holds the lock. Without --pid, or with --pid $$, it is the " +
    "script, also in a subshell.",
    "When the lock is about to be lost (no server responds, or it is broken with baton break), the script, its " +
    "descendants, and all processes that it started under the lock are asked to stop, and killed before the lock " +
    "can be granted again: also an interactive shell. When baton itself is killed, they are killed within a second.",
  ],
  examples: [
    [
      `held=$(baton hold nightly -w 10s --pid $$) || exit; eval "$held"; ./step1; ./step2; baton release nightly`,
      "both steps under the lock",
    ],
    [
      `eval "$(baton hold nightly)"`,
      "at a prompt: this shell holds the lock until baton release nightly, or until it ends",
    ],
    [`held=$(baton hold -n nightly --pid $$) || exit 0; eval "$held"`, "another script holds the lock: nothing to do"],
    [`held=$(baton hold -s data --pid $$) || exit; eval "$held"`, "a shared lock: together with other readers"],
    [`baton check --at-least 5s || exit`, "between two steps: check that the lock is held for at least 5 s more"],
  ],
  settings: holdSettings,
  completes: "locks",
  around: runForEval,
  run: hold,
});

/** How long the holder process may take to leave the queue after baton has asked it to stop, in milliseconds. */
const leaveMsMax = 950;

async function hold(call: CommandCall<typeof holdSettings>): Promise<ExitCode> {
  if (isTerminal(1)) throw new BatonError("USAGE", promptMessage(call.names));
  const options = readHoldOptions(call);
  if (wasStreamClosedAtStart(1)) {
    throw new BatonError(
      "IO",
      "Cannot print the variables of the lock: stdout was closed when baton was started. Use held=$(baton hold " +
        '…), then eval "$held"',
    );
  }
  const facts = new StatusReportFacts();
  const about = {
    verb: "hold",
    conflicts: ["LOCK_BUSY", "LOCK_TIMEOUT"],
    io: call.io,
    facts,
  } as const;
  return await runWithStatusReport({ ...options, ...about }, () => holdThroughHelper(options, call.io, facts));
}

/**
 * Returns the message for `baton hold NAME` at a prompt: the shell would hold the lock, but would not get its
 * variables.
 */
function promptMessage(names: readonly string[]): string {
  const line = ["baton", ...process.argv.slice(2)].map(shellQuoteIfNeeded).join(" ");
  const all = names.map(shellQuoteIfNeeded).join(" ");
  return `stdout is a terminal, but the shell has to read what baton hold prints. Type: eval "$(${line})". ` +
    `The lock then ends with this shell or with baton release ${all}, and this shell is stopped if the lock is lost. ` +
    `For a shell of its own under the lock, type: baton lock ${all} bash`;
}

async function holdThroughHelper(options: HoldOptions, io: Io, facts: StatusReportFacts): Promise<LockEnding> {
  using stop = new StopRequestListener();
  const outcome = Promise.withResolvers<LockEnding>();
  const helper = await startHolder(options, (message) => {
    if (message.kind === "stderr") return io.err(message.text, message.form);
    if (message.kind === "frame") return void io.frame("stderr", message.text);
    if (message.kind === "failed") return outcome.reject(new BatonError(message.code, message.message));
    if (message.kind === "ended") return outcome.resolve(message.ending);
    facts.tokens = message.tokens;
    facts.waitedMs = message.waitedMs;
    printVariables(message.variables, io, helper).then(
      () => outcome.resolve({ exitCode: 0, reason: "held", message: null }),
      outcome.reject,
    );
  });
  helper.ended.then(() => {
    outcome.reject(
      new BatonError("START_FAILED", "The holder process has ended without a result: the lock is not held"),
    );
  });
  await helper.send(JSON.stringify(holderRequestOf(options, io)) + "\n");
  try {
    const ending = await rejectOnAbort(outcome.promise, stop.signal);
    if (facts.tokens === null) markHelperEnding(helper.pid); // the ending is the last message of the holder process
    return ending;
  } catch (thrown) {
    await stopHolder(helper);
    throw thrown;
  }
}

async function startHolder(
  options: HoldOptions,
  onMessage: (message: HolderMessage<LockEnding>) => void,
): Promise<HelperProcess> {
  const { BATON_LOCK_COOKIE: _cookie, ...env } = process.env as Record<string, string>;
  const stderr = holderStderr(options.script.pid);
  try {
    return await startHelperProcess({
      args: [holderProcessCommand, ...options.names],
      argv0: holderProcessName,
      env: { ...env, [holderProcessVariable]: "1" },
      ...(stderr === undefined ? {} : { stderr }),
      isWaitedFor: true,
    }, (line) => onMessage(JSON.parse(line) as HolderMessage<LockEnding>));
  } catch (error) {
    throw new BatonError("START_FAILED", `Cannot start the holder process: ${errorMessage(error)}`, { cause: error });
  }
}

function holderRequestOf(options: HoldOptions, io: Io): HolderRequest<PackedLockOptions> {
  return {
    options: packLockOptions(options),
    script: options.script,
    env: { BATON_LOCK_COOKIE: io.env["BATON_LOCK_COOKIE"] ?? "" },
    columns: ErasableTerminalLine.canShow(io) ? io.columns : null,
  };
}

/** Prints the variables, then confirms that to the holder process, which already supervises the script. */
async function printVariables(
  variables: Readonly<Record<string, string | null>>,
  io: Io,
  helper: HelperProcess,
): Promise<void> {
  const entries = Object.entries(variables).map(([name, value]) => [name, value ?? undefined] as const);
  io.out(shellExportLines(Object.fromEntries(entries), io.env));
  await io.written("stdout");
  await helper.send(holderConfirmedLine);
}

async function stopHolder(helper: HelperProcess): Promise<void> {
  await helper.send(holderStopLine);
  let cancel = () => {};
  const tooLate = new Promise<void>((resolve) => cancel = systemClock().startTimer(leaveMsMax, resolve));
  await Promise.race([helper.ended, tooLate]);
  cancel();
}

/**
 * Returns the descriptor to which the holder process writes after `baton hold` has ended; undefined if there is none.
 * It is normally stderr. If stderr is a pipe that the script does not have, it is the script's own stderr: `$(baton
 * hold … 2>&1)` would otherwise read the pipe as long as the lock is held.
 */
function holderStderr(scriptPid: number): number | undefined {
  try {
    const own = fstatSync(2);
    if (!own.isFIFO() && !own.isSocket()) return 2;
    for (const fd of [1, 2]) {
      if (isSameFile(statSync(`/proc/${scriptPid}/fd/${fd}`), own)) return 2;
    }
  } catch {
    // The descriptor is closed, or this user cannot read it.
  }
  try {
    const { O_WRONLY, O_APPEND, O_NOCTTY, O_NONBLOCK } = constants;
    return openSync(`/proc/${scriptPid}/fd/2`, O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK);
  } catch {
    return undefined; // the descriptor is closed, a socket, or owned by another user
  }
}

/**
 * Runs `run`. If that fails, prints a shell command that fails, because `eval "$(…)"` ignores the exit code of `baton
 * hold`.
 */
async function runForEval(run: () => Promise<ExitCode>, io: Io): Promise<ExitCode> {
  let code: ExitCode;
  try {
    code = await run();
  } catch (thrown) {
    printFailure(codeOfThrown(thrown), io);
    throw thrown;
  }
  if (code !== exitCodes.SUCCESS) printFailure(code, io);
  return code;
}

/** Returns the exit code as a shell reports it. For a signal, it is 128 plus the signal's number. */
function codeOfThrown(thrown: unknown): ExitCode {
  if (thrown instanceof StoppedBySignal) return 128 + osConstants.signals[thrown.signal];
  return thrown instanceof BatonError ? toExitCode(thrown.code) : exitCodes.INTERNAL;
}

function printFailure(code: ExitCode, io: Io): void {
  if (isTerminal(1)) return; // no shell reads stdout
  try {
    io.out(failingShellLine(code));
  } catch {
    // Does nothing, because stdout is closed.
  }
}

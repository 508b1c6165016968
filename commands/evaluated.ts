/** Runs commands whose output a shell evaluates: a failure must not look like an empty output. */
import { constants } from "node:os";
import { failingLine } from "../src/process/hold/shell_quote.ts";
import type { Io } from "../src/terminal/io.ts";
import { StoppedBySignal } from "../src/process/supervise/stop_signals.ts";
import { BatonError } from "../src/errors.ts";
import { type ExitCode, exitCodeOf, exitCodes } from "./exit_codes.ts";

/** `eval "$(…)"` ignores the exit code of the command, so on failure the output itself is a failing shell command. */
export async function evaluated(run: () => Promise<ExitCode>, io: Io): Promise<ExitCode> {
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

/** The exit code as a shell reports it; for a signal, 128 plus its number. */
function codeOfThrown(thrown: unknown): ExitCode {
  if (thrown instanceof StoppedBySignal) return 128 + constants.signals[thrown.signal];
  return thrown instanceof BatonError ? exitCodeOf(thrown.code) : exitCodes.INTERNAL;
}

function printFailure(code: ExitCode, io: Io): void {
  try {
    io.out(failingLine(code));
  } catch {
    // stdout is closed
  }
}

/** For commands whose output a shell evaluates: what fails must not look like nothing to do. */
import { constants } from "node:os";
import { failingLine } from "../src/process/hold/shell_quote.ts";
import type { Io } from "../src/terminal/io.ts";
import { StoppedBySignal } from "../src/process/supervise/stopped_by_signal.ts";
import { BatonError } from "../src/errors.ts";
import { type ExitCode, exitCodeOf, exitCodes } from "./exit_codes.ts";

/** `eval "$(…)"` throws away the exit code of what it evaluates, and runs on, so that the output itself has to fail. */
export async function evaluated(run: () => Promise<ExitCode>, io: Io): Promise<ExitCode> {
  let code: ExitCode;
  try {
    code = await run();
  } catch (thrown) {
    tell(codeOfThrown(thrown), io);
    throw thrown;
  }
  if (code !== exitCodes.SUCCESS) tell(code, io);
  return code;
}

/** As a shell sees a process that dies of a signal. */
function codeOfThrown(thrown: unknown): ExitCode {
  if (thrown instanceof StoppedBySignal) return 128 + constants.signals[thrown.signal];
  return thrown instanceof BatonError ? exitCodeOf(thrown.code) : exitCodes.INTERNAL;
}

function tell(code: ExitCode, io: Io): void {
  try {
    io.out(failingLine(code));
  } catch {
    // nobody reads it
  }
}

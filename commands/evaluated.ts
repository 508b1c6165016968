/** For commands whose output a shell evaluates: what fails must not look like nothing to do. */
import { failingLine } from "../src/cli/hold/shell_lines.ts";
import type { Io } from "../src/cli/io.ts";
import { StoppedBySignal } from "../src/cli/stopped_by_signal.ts";
import { BatonError } from "../src/errors.ts";
import { constants } from "node:os";
import { type ExitCode, exitCodeOf, exitCodes } from "./exit_codes.ts";

/** `eval "$(…)"` throws away the exit code of what it evaluates, and runs on, so that the output itself has to fail. */
export async function evaluated(run: () => Promise<ExitCode>, io: Io): Promise<ExitCode> {
  let exitCode: ExitCode = exitCodes.INTERNAL;
  try {
    return exitCode = await run();
  } catch (thrown) {
    if (thrown instanceof BatonError) exitCode = exitCodeOf(thrown.code);
    if (thrown instanceof StoppedBySignal) exitCode = 128 + constants.signals[thrown.signal];
    throw thrown;
  } finally {
    if (exitCode !== exitCodes.SUCCESS) tell(exitCode, io);
  }
}

function tell(exitCode: ExitCode, io: Io): void {
  try {
    io.out(failingLine(exitCode));
  } catch {
    // nobody reads it
  }
}

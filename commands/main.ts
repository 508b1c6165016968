/**
 * The only entry, and the only writer of the exit code. Loads nothing by itself: the guard, which is this same program,
 * has to be there in no time.
 */
import process from "node:process";

const words = process.argv.slice(2);
if (words[0] === "__guard") {
  const { runGuard } = await import("../src/cli/guard/main.ts");
  await runGuard();
} else {
  const { runCommandLine, systemIo } = await import("./command_line.ts");
  try {
    process.exitCode = await runCommandLine(words, systemIo());
  } catch (thrown) {
    const { dieOf, StoppedBySignal } = await import("../src/cli/stopped_by_signal.ts");
    await dieOf(thrown instanceof StoppedBySignal ? thrown.signal : "SIGPIPE");
  }
}
process.exit();

/** The only entry, and the only writer of the exit code. */
import process from "node:process";

const words = process.argv.slice(2);
if (words[0] === "__guard") {
  const { runGuard } = await import("../src/cli/guard/main.ts");
  await runGuard();
} else {
  const { inheritedDescriptors } = await import("../src/cli/child/inherited_descriptors.ts");
  const inheritedFds = inheritedDescriptors(); // before anything is opened
  const { systemIo } = await import("../src/cli/io.ts");
  const { runCommandLine } = await import("./command_line.ts");
  try {
    process.exitCode = await runCommandLine(words, systemIo(inheritedFds));
  } catch (thrown) {
    const { dieOf, StoppedBySignal } = await import("../src/cli/stopped_by_signal.ts");
    await dieOf(thrown instanceof StoppedBySignal ? thrown.signal : "SIGPIPE");
  }
}
process.exit();

/**
 * Starts the program. Only this module sets the exit code. It loads only the modules that a call needs, because the
 * guard process runs the same program and must start quickly.
 */
import process from "node:process";

const words = process.argv.slice(2);
if (words[0] === "__guard") {
  const { runGuard } = await import("../src/base/process/guard/guard_main.ts");
  const clock = async () => (await import("../src/base/support/clock.ts")).systemClock();
  await runGuard({
    async end(handle) {
      const { endSessionOfDeadProcess } = await import("../src/protocols/zookeeper/end_session.ts");
      await endSessionOfDeadProcess(handle, { clock: await clock(), limitMs: 5000 });
    },
    async keep(handle) {
      const { keepDeadBatonSession } = await import("../src/coordination/job/kept_session.ts");
      return keepDeadBatonSession(handle, { clock: await clock() });
    },
  });
} else {
  // The runtime warns about two variables that have no effect on baton. These warnings are hidden.
  const { emitWarning } = process;
  process.emitWarning = (...warning: unknown[]) => {
    const isIdle = /NODE_(DEBUG|TLS_REJECT_UNAUTHORIZED)/.test(String(warning[0]));
    if (!isIdle) Reflect.apply(emitWarning, process, warning);
  };
  const { printInternalError, runCommandLine, systemIo } = await import("./command_line.ts");
  const io = systemIo();
  // The runtime would exit with 1 by itself, which would look like the result of a check.
  for (const event of ["uncaughtException", "unhandledRejection"]) {
    process.on(event, (thrown: unknown) => {
      const code = printInternalError(thrown, io);
      void io.end().then(() => process.exit(code));
    });
  }
  try {
    process.exitCode = await runCommandLine(words, io);
    await io.end();
  } catch (thrown) {
    await io.end();
    const { endProcessBySignal, StoppedBySignal } = await import("../src/base/process/supervise/signal_source.ts");
    await (thrown instanceof StoppedBySignal
      ? endProcessBySignal(thrown.signal, thrown)
      : endProcessBySignal("SIGPIPE"));
  }
}
process.exit();

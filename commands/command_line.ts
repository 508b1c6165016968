/**
 * Runs a command line: selects the command by the first arguments, and turns each failure into one message and an exit
 * code.
 */
import { waitForEndingHelpers } from "../src/base/process/spawn/helper_process.ts";
import { type Io, systemIo } from "../src/base/terminal/io.ts";
import { BatonError, errorMessage } from "../src/base/errors.ts";
import type { Command } from "./command.ts";
import { countCommandNameWords, findCommandName, listSubcommands } from "./command_names.ts";
import { type ExitCode, exitCodes, toExitCode } from "../src/base/exit_codes.ts";
import { commandLoaders, loadProductSettings, products } from "./products.ts";
import { runCommand } from "./run_command.ts";

export { systemIo };

/**
 * Runs the arguments of one command line. Rejects only with StoppedBySignal or StdoutReaderGone: the process then ends
 * with a signal.
 */
export async function runCommandLine(args: readonly string[], io: Io): Promise<ExitCode> {
  let words = args;
  let code: ExitCode = exitCodes.SUCCESS;
  try {
    const leading = await countLeadingOptions(args);
    words = args.slice(leading);
    code = await dispatch(words, io, args.slice(0, leading));
    await io.written("stdout");
    return code;
  } catch (thrown) {
    if (thrown instanceof BatonError) {
      const hint = thrown.code === "USAGE" ? `\nbaton: see: baton ${helpArgs(words)}` : "";
      io.err(`baton: ${thrown.message}${hint}\n`);
      return code > exitCodes.FALSE ? code : toExitCode(thrown.code);
    }
    if (code > exitCodes.FALSE) return code; // the failure of the command matters more than the lost output
    if (thrown instanceof Error && endsProcess.has(thrown.name)) throw thrown;
    return printInternalError(thrown, io);
  } finally {
    await waitForEndingHelpers();
  }
}

/** Prints an unexpected error with its stack. */
export function printInternalError(thrown: unknown, io: Io): ExitCode {
  const stack = thrown instanceof Error ? `${thrown.stack}\n` : "";
  io.err(`baton: internal error, please report it: ${errorMessage(thrown)}\n${stack}`);
  return exitCodes.INTERNAL;
}

const endsProcess: ReadonlySet<string> = new Set(["StoppedBySignal", "StdoutReaderGone"]);

/** Options that may stand in place of a command, with the command that each option means. */
const flagCommands: ReadonlyMap<string, string> = new Map([
  ["--help", "help"],
  ["--version", "version"],
  ["-V", "version"],
]);

/** Counts the options before the name of the command. Does not count `--help` or `--version` in place of a command. */
async function countLeadingOptions([first = "", ...rest]: readonly string[]): Promise<number> {
  if (!first.startsWith("-") || first === "--help" || first === "-h") return 0;
  return (await import("./program/leading_options.ts")).countValidLeadingOptions([first, ...rest]);
}

async function dispatch(args: readonly string[], io: Io, leading: readonly string[]): Promise<ExitCode> {
  const [first, ...rest] = args;
  if (first === undefined || first === "-h") {
    const { printBriefOverview } = await import("./program/help/help_command.ts");
    await printBriefOverview(products, commandLoaders, { io, stream: first === undefined ? "stderr" : "stdout" });
    return first === undefined ? exitCodes.USAGE : exitCodes.SUCCESS;
  }
  if (first === "__complete") {
    const { printCompletions } = await import("./program/completion/complete.ts");
    return await printCompletions(
      { products, loaders: commandLoaders, settings: (await loadProductSettings()).inFiles },
      rest,
      io,
    );
  }
  for (const { internalCommands } of products) {
    const run = internalCommands?.get(first);
    if (run !== undefined) return await run(io);
  }
  const alias = flagCommands.get(first);
  if (alias !== undefined) return await dispatch([alias, ...rest], io, leading);
  const name = findCommandName(args, commandLoaders);
  const load = name === null ? undefined : commandLoaders[name];
  if (name !== null && load !== undefined) {
    return await runLoaded(await load(), args.slice(countCommandNameWords(name)), io, leading);
  }
  if (listSubcommands(first, Object.keys(commandLoaders)).length > 0) {
    const { printGroupHelp } = await import("./program/help/help_command.ts");
    return await printGroupHelp(args, commandLoaders, io);
  }
  const { unknownCommandMessage } = await import("./program/unknown_command.ts");
  throw new BatonError("USAGE", unknownCommandMessage(args, Object.keys(commandLoaders)));
}

async function runLoaded(
  command: Command,
  args: readonly string[],
  io: Io,
  leading: readonly string[],
): Promise<ExitCode> {
  const run = () =>
    runCommand(command, args, { io, leading, loadSettings: async () => (await loadProductSettings()).inFiles });
  return await (command.around?.(run, io) ?? run());
}

function helpArgs(args: readonly string[]): string {
  const name = findCommandName(args, commandLoaders);
  const isGroup = listSubcommands(args[0] ?? "", Object.keys(commandLoaders)).length > 0;
  return name !== null ? `${name} --help` : isGroup ? `${args[0]} --help` : "--help";
}

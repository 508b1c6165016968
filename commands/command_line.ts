/**
 * The command line: its first argument selects the command, and each failure becomes one message and one exit code.
 *
 * `lock` runs most often, so it is loaded immediately. The other commands are loaded in a few groups that share code: with one part per
 * command, loading took a millisecond longer.
 */
import { waitForEndingHelpers } from "../src/base/process/spawn/helper_process.ts";
import { type Io, systemIo } from "../src/base/terminal/io.ts";
import { BatonError, messageOf } from "../src/base/errors.ts";
import { didYouMean } from "../src/base/support/did_you_mean.ts";
import type { Command, CommandLoaders } from "./command.ts";
import { commandNameOf, firstWords, subcommandsOf, wordCount } from "./command_names.ts";
import { type ExitCode, exitCodeOf, exitCodes } from "./exit_codes.ts";
import { lockCommand } from "./coordination/lock/lock.ts";
import { runCommand } from "./run_command.ts";

export { systemIo };

/** The commands in the order of the help page. A command of two words belongs to a group; the first word alone is no command. */
export const commandLoaders: CommandLoaders = {
  lock: () => Promise.resolve(lockCommand),
  hold: async () => (await import("./coordination/hold/hold.ts")).holdCommand,
  release: async () => (await import("./coordination/hold/release.ts")).releaseCommand,
  elect: async () => (await import("./coordination/election/election_commands.ts")).electCommand,
  leader: async () => (await import("./coordination/election/election_commands.ts")).leaderCommand,
  forward: async () => (await import("./coordination/election/election_commands.ts")).forwardCommand,
  resign: async () => (await import("./coordination/election/election_commands.ts")).resignCommand,
  barrier: async () => (await import("./coordination/barrier/barrier.ts")).barrierCommand,
  pool: async () => (await import("./coordination/pool/pool.ts")).poolCommand,
  who: async () => (await import("./operator/operator_commands.ts")).whoCommand,
  ls: async () => (await import("./operator/operator_commands.ts")).lsCommand,
  explain: async () => (await import("./coordination/looking/explain_command.ts")).explainCommand,
  history: async () => (await import("./coordination/looking/history.ts")).historyCommand,
  cron: async () => (await import("./coordination/cron/cron.ts")).cronCommand,
  break: async () => (await import("./operator/operator_commands.ts")).breakCommand,
  metrics: async () => (await import("./operator/metrics.ts")).metricsCommand,
  top: async () => (await import("./operator/top.ts")).topCommand,
  ui: async () => (await import("./operator/ui.ts")).uiCommand,
  check: async () => (await import("./coordination/job/check.ts")).checkCommand,
  doctor: async () => (await import("./operator/doctor.ts")).doctorCommand,
  fence: async () => (await import("./coordination/fence/fence.ts")).fenceCommand,
  publish: async () => (await import("./pubsub/publish.ts")).publishCommand,
  subscribe: async () => (await import("./pubsub/subscribe.ts")).subscribeCommand,
  "pubsub serve": async () => (await import("./pubsub/local_service.ts")).pubsubServeCommand,
  "pubsub server": async () => (await import("./pubsub/server.ts")).pubsubServerCommand,
  "pubsub topic": async () => (await import("./pubsub/topic.ts")).pubsubTopicCommand,
  "pubsub proxy": async () => (await import("./pubsub/proxy.ts")).pubsubProxyCommand,
  "pubsub client": async () => (await import("./pubsub/client.ts")).pubsubClientCommand,
  "pubsub keygen": async () => (await import("./pubsub/keygen.ts")).keygenCommand,
  "retry-processor call": async () => (await import("./retry/call.ts")).retryCallCommand,
  "retry-processor submit": async () => (await import("./retry/submit.ts")).retrySubmitCommand,
  "retry-processor run": async () => (await import("./retry/run.ts")).retryRunCommand,
  "retry-processor serve": async () => (await import("./retry/serve.ts")).retryServeCommand,
  "retry-processor ls": async () => (await import("./retry/inspect.ts")).retryLsCommand,
  "retry-processor show": async () => (await import("./retry/inspect.ts")).retryShowCommand,
  "retry-processor retry": async () => (await import("./retry/control.ts")).retryRetryCommand,
  "retry-processor cancel": async () => (await import("./retry/control.ts")).retryCancelCommand,
  "retry-processor pause": async () => (await import("./retry/control.ts")).retryPauseCommand,
  "retry-processor resume": async () => (await import("./retry/control.ts")).retryResumeCommand,
  "retry-processor dlq": async () => (await import("./retry/dlq.ts")).retryDlqCommand,
  "retry-processor stats": async () => (await import("./retry/inspect.ts")).retryStatsCommand,
  "retry-processor verify": async () => (await import("./retry/inspect.ts")).retryVerifyCommand,
  "retry-processor explain": async () => (await import("./retry/explain.ts")).retryExplainCommand,
  keeper: async () => (await import("./coordination/keeper/keeper.ts")).keeperCommand,
  completion: async () => (await import("./program/completion/completion.ts")).completionCommand,
  config: async () => (await import("./program/config.ts")).configCommand,
  version: async () => (await import("./program/version.ts")).versionCommand,
  help: async () => (await import("./program/help/help_command.ts")).helpCommandFor(commandLoaders),
};

/**
 * Runs one command line, without the name of the program. Rejects only with StoppedBySignal and ReaderGone, which end the process
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
      return code > exitCodes.FALSE ? code : exitCodeOf(thrown.code);
    }
    if (code > exitCodes.FALSE) return code; // a failure says more than that its output was lost
    if (thrown instanceof Error && endsProcess.has(thrown.name)) throw thrown;
    return internalError(thrown, io);
  } finally {
    await waitForEndingHelpers();
  }
}

/** Prints a bug with its stack. */
export function internalError(thrown: unknown, io: Io): ExitCode {
  const stack = thrown instanceof Error ? `${thrown.stack}\n` : "";
  io.err(`baton: internal error, please report it: ${messageOf(thrown)}\n${stack}`);
  return exitCodes.INTERNAL;
}

const endsProcess: ReadonlySet<string> = new Set(["StoppedBySignal", "ReaderGone"]);

/** Options in the place of a command, and the command that they stand for. */
const flagCommands: ReadonlyMap<string, string> = new Map([
  ["--help", "help"],
  ["--version", "version"],
  ["-V", "version"],
]);

/** The number of options before the name of the command. `--help` and `--version` in the place of a command are none of them. */
async function countLeadingOptions([first = "", ...rest]: readonly string[]): Promise<number> {
  if (!first.startsWith("-") || first === "--help" || first === "-h") return 0;
  return (await import("./program/leading_options.ts")).checkLeadingOptions([first, ...rest]);
}

async function dispatch(args: readonly string[], io: Io, leading: readonly string[]): Promise<ExitCode> {
  const [first, ...rest] = args;
  if (first === undefined || first === "-h") {
    const { printBriefOverview } = await import("./program/help/help_command.ts");
    printBriefOverview(commandLoaders, io, first === undefined ? "stderr" : "stdout");
    return first === undefined ? exitCodes.USAGE : exitCodes.SUCCESS;
  }
  if (first === "__complete") {
    const { complete } = await import("./program/completion/complete.ts");
    return await complete(commandLoaders, rest, io);
  }
  if (first === "__holder") return await (await import("./coordination/hold/holder.ts")).runHolder(io);
  const alias = flagCommands.get(first);
  if (alias !== undefined) return await dispatch([alias, ...rest], io, leading);
  const name = commandNameOf(args, commandLoaders);
  const load = name === null ? undefined : commandLoaders[name];
  if (name !== null && load !== undefined) {
    return await runLoaded(await load(), args.slice(wordCount(name)), io, leading);
  }
  if (subcommandsOf(first, Object.keys(commandLoaders)).length > 0) {
    const { printGroupHelp } = await import("./program/help/help_command.ts");
    return await printGroupHelp(args, commandLoaders, io);
  }
  throw new BatonError("USAGE", unknownCommandMessage(args, firstWords(Object.keys(commandLoaders))));
}

async function runLoaded(
  command: Command,
  args: readonly string[],
  io: Io,
  leading: readonly string[],
): Promise<ExitCode> {
  const run = () => runCommand(command, args, io, leading);
  return await (command.around?.(run, io) ?? run());
}

function helpArgs(args: readonly string[]): string {
  const name = commandNameOf(args, commandLoaders);
  const isGroup = subcommandsOf(args[0] ?? "", Object.keys(commandLoaders)).length > 0;
  return name !== null ? `${name} --help` : isGroup ? `${args[0]} --help` : "--help";
}

/** The message for a first argument that is no command. `commands`: the first words of all commands. */
export function unknownCommandMessage([first = "", ...rest]: readonly string[], commands: readonly string[]): string {
  const command = rest.find((arg) => commands.includes(arg));
  const isOption = first.startsWith("-");
  if (isOption && command !== undefined) {
    return `${first} is an option of single commands, which follows the command, as in: baton ${command} ${first} …`;
  }
  const suggestion = didYouMean(first, [...commands, "--help", "--version"]);
  const order = suggestion === "" && command !== undefined
    ? `; the command comes first, as in: baton ${command} ${first}`
    : "";
  return `There is no ${isOption ? "option" : "command"} "${first}"${suggestion}${order}`;
}

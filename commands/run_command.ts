/** Runs one call of a command: arguments, configuration files, variables, then the command itself. */
import { type FlagSpec, parseArgs, type ParsedArgs } from "../src/terminal/parse_args.ts";
import type { Io } from "../src/terminal/io.ts";
import { readConfigFiles } from "../src/config/config_file.ts";
import { resolveSettings } from "../src/config/resolve_settings.ts";
import type { SettingTable, SettingValues } from "../src/config/setting.ts";
import { fileSettings } from "../src/config/settings.ts";
import type { BatonError } from "../src/errors.ts";
import { type Command, commonSettings } from "./command.ts";
import type { ExitCode } from "./exit_codes.ts";
import { refuseUnreadableArgs, refuseUnreadableVariables } from "./input_encoding.ts";

/** Parses the arguments, reads the configuration, and runs the command. Throws BatonError for invalid input. */
export async function runCommand<S extends SettingTable>(
  command: Command<S>,
  args: readonly string[],
  io: Io,
): Promise<ExitCode> {
  const settings = { ...commonSettings, ...command.settings };
  const { flags, ...parsed } = parseArgs(flagsOf(settings), args);
  const isPassedOn = !command.runsNothing && !command.storesCommand;
  refuseUnreadableArgs(args, isPassedOn ? parsed.command?.length ?? 0 : 0);
  const { names, command: childCommand } = command.runsNothing ? withoutCommand(parsed) : parsed;
  if (flags.has("help")) {
    const { commandHelp } = await import("./help_text.ts");
    io.out(commandHelp(command));
    return 0;
  }
  const mistakes: BatonError[] = [];
  const onMistake = command.takesMistakes === true ? (mistake: BatonError) => void mistakes.push(mistake) : undefined;
  const files = await readConfigFiles(fileSettings, {
    named: flags.get("config"),
    env: io.env,
    ...(onMistake === undefined ? {} : { onMistake }),
  });
  const section = command.sectionOf?.(names, childCommand);
  const sources = { flags, env: io.env, files, section };
  refuseUnreadableVariables(settings, sources);
  const values = resolveSettings(settings, sources, onMistake) as SettingValues<S & typeof commonSettings>;
  return await command.run({ values, names, command: childCommand, sources, io, mistakes });
}

function withoutCommand(
  { names, command }: Pick<ParsedArgs, "names" | "command">,
): Pick<ParsedArgs, "names" | "command"> {
  return { names: [...names, ...command ?? []], command: null };
}

/** The flags of a table of settings, for `parseArgs`. */
export function flagsOf(settings: SettingTable): Record<string, FlagSpec> {
  const flags: Record<string, FlagSpec> = {};
  for (const [name, { flag, type, once = false }] of Object.entries(settings)) {
    if (flag === undefined) continue;
    flags[name] = { flag, takesValue: type.placeholder !== "", isOnce: once, isList: type.fileType === "strings" };
  }
  return flags;
}

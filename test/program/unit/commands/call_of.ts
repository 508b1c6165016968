/**
 * A command as it was called, by way of everything that stands before it: words, settings, configuration. Runs nothing.
 */
import { type CommandCall, defineCommand } from "../../../../commands/command.ts";
import { runCommand } from "../../../../commands/run_command.ts";
import { exitCodes } from "../../../../src/base/exit_codes.ts";
import type { Io } from "../../../../src/base/terminal/io.ts";
import type { SettingTable } from "../../../../src/base/config/setting.ts";

export async function callOf<S extends SettingTable>(
  settings: S,
  words: readonly string[],
  io: Io,
): Promise<CommandCall<S>> {
  const calls: CommandCall<S>[] = [];
  const command = defineCommand<S>({
    name: "called",
    summary: "",
    usage: "",
    details: [],
    examples: [],
    settings,
    run(call) {
      calls.push(call);
      return Promise.resolve(exitCodes.SUCCESS);
    },
  });
  await runCommand(command, words, { io, loadSettings: () => Promise.resolve({}) });
  const [call] = calls;
  if (call === undefined) throw new Error("the command did not run");
  return call;
}

/** `baton completion`: prints the script with which a shell completes baton's command lines. */
import { BatonError } from "../src/errors.ts";
import { didYouMean } from "../src/support/did_you_mean.ts";
import { defineCommand } from "./command.ts";
import { completionScripts, type Shell, shells } from "./completion/scripts.ts";
import { exitCodes } from "./exit_codes.ts";

export const completionCommand = defineCommand({
  name: "completion",
  summary: "print the completion script of a shell",
  usage: "bash|zsh|fish",
  details: [
    "The script completes commands, options, their values, and names of locks, elections, barriers and pools. It reads the names " +
    "from the server; it starts no keeper for that.",
  ],
  examples: [
    ["baton completion bash >/etc/bash_completion.d/baton", "for all users"],
    ["source <(baton completion bash)", "for this shell only"],
    ["baton completion zsh >/usr/local/share/zsh/site-functions/_baton", "for zsh"],
    ["baton completion fish >~/.config/fish/completions/baton.fish", "for fish"],
  ],
  settings: {},
  runsNothing: true,
  completes: shells,
  // deno-lint-ignore require-await -- a command is asynchronous, and this one does not wait
  async run({ names: [name, ...more], io }) {
    if (name === undefined) {
      throw new BatonError(
        "USAGE",
        "baton completion needs a shell: bash, zsh or fish, as in: baton completion bash",
      );
    }
    if (more.length > 0 || !isShell(name)) {
      const given = [name, ...more].join(" ");
      throw new BatonError(
        "USAGE",
        `baton completion takes bash, zsh or fish, not "${given}"${didYouMean(given.toLowerCase(), shells)}`,
      );
    }
    io.out(completionScripts[name]);
    return exitCodes.SUCCESS;
  },
});

function isShell(name: string): name is Shell {
  return shells.some((shell) => shell === name);
}

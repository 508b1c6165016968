/** `baton completion`: prints what a shell needs to complete baton's command lines. */
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
    "Completes commands, options, their values, and the names of locks, which it asks the server for; it starts no keeper " +
    "for that.",
  ],
  examples: [
    ["baton completion bash >/etc/bash_completion.d/baton", "for everybody"],
    ["source <(baton completion bash)", "for this shell"],
    ["baton completion zsh >/usr/local/share/zsh/site-functions/_baton", "zsh"],
    ["baton completion fish >~/.config/fish/completions/baton.fish", "fish"],
  ],
  settings: {},
  runsNothing: true,
  completes: shells,
  // deno-lint-ignore require-await -- a command is asynchronous, this one has nothing to wait for
  async run({ names: [name, ...more], io }) {
    if (name === undefined) {
      throw new BatonError(
        "USAGE",
        "baton completion needs the shell: bash, zsh or fish, as in: baton completion bash",
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

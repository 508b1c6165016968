/** Completion as a user sees it: bash, zsh and fish on a terminal, with the tabulator key. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { TerminalSession } from "../../support/terminal_session.ts";

setDefaultTimeout(120_000);

let session: BatonSession;
beforeAll(() => {
  session = new BatonSession();
  mkdirSync(session.path("bin"));
  writeFileSync(session.path("bin/baton"), '#!/bin/sh\nexec "$baton" "$@"\n');
  chmodSync(session.path("bin/baton"), 0o755);
});
afterAll(() => session[Symbol.asyncDispose]());

interface Shell {
  readonly command: readonly [peer: "bash" | "zsh" | "fish", ...args: string[]];
  /** Loads the completion. */
  readonly setUp: string;
  /** How often the key is pressed until a list is shown. */
  readonly tabs: string;
}

const shells = {
  bash: { command: ["bash", "--norc", "--noprofile", "-i"], setUp: "source <(baton completion bash)", tabs: "\t\t" },
  zsh: {
    command: ["zsh", "-f", "-i"],
    setUp: "autoload -Uz compinit; compinit -u -D; source <(baton completion zsh)",
    tabs: "\t",
  },
  fish: { command: ["fish", "--no-config", "-i"], setUp: "baton completion fish | source", tabs: "\t" },
  // The same where packages and users install the script.
  "zsh with a folder of fpath": {
    command: ["zsh", "-f", "-i"],
    setUp:
      "mkdir -p site; baton completion zsh >site/_baton; fpath=($PWD/site $fpath); autoload -Uz compinit; compinit -u -D",
    tabs: "\t",
  },
  "fish with its folder of completions": {
    command: ["fish", "-i"],
    setUp: "mkdir -p ~/.config/fish/completions; baton completion fish >~/.config/fish/completions/baton.fish",
    tabs: "\t",
  },
} as const satisfies Record<string, Shell>;

/** bash and zsh turn on bracketed paste when they read a line; fish 3 sets the title before its prompt. */
// deno-lint-ignore no-control-regex -- escape codes are control characters
const isEditing = /is ready[^]*(\x1b\[\?2004h|\x1b\]0;[^\x07]*\x07[^]*[#>] )/;

/** A shell with the completion loaded, at its prompt. */
async function open({ command, setUp }: Shell): Promise<TerminalSession> {
  const env = { ...session.env, PATH: `${session.path("bin")}:${session.env["PATH"]}`, LC_ALL: "C.UTF-8", PS1: "> " };
  const terminal = new TerminalSession(command, { env, cwd: session.folder, columns: 120 });
  terminal.type(`${setUp}; printf 'is %s\\n' ready\r`);
  await terminal.shows("is ready");
  // Keys that are typed before the line editor has the terminal may be dropped.
  await eventually(() => isEditing.test(terminal.shown), { what: "the line editor", withinMs: 30_000 });
  return terminal;
}

for (const [name, shell] of Object.entries<Shell>(shells)) {
  const [peer] = shell.command;
  describeWithPeer(peer, name, () => {
    test("lists options with their descriptions", async () => {
      await using terminal = await open(shell);
      terminal.type(`baton lock --on-${shell.tabs}`);
      const text = await terminal.shows(/--on-doubt[^]*while no server responds/);
      expect(text).toContain("when the lock has been held this long");
    });

    test("completes a command, and runs what was completed without its description", async () => {
      await using terminal = await open(shell);
      terminal.type("baton compl\t");
      await terminal.shows("completion");
      terminal.type("nosuchshell\r");
      await terminal.shows('takes bash, zsh or fish, not "nosuchshell"');
    });
  });
}

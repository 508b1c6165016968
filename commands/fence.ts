/** `baton fence`: lets nobody through whose lock somebody else was granted since. */
import { hostname } from "node:os";
import { processSignals } from "../src/cli/child/signal_source.ts";
import { runUnderStore, type UnderStore } from "../src/cli/fence/run_under_store.ts";
import { parseToken } from "../src/cli/fence/token_slots.ts";
import { setting, type SettingTable } from "../src/config/setting.ts";
import { duration, text, toggle } from "../src/config/value_types.ts";
import { BatonError } from "../src/errors.ts";
import { systemClock } from "../src/support/clock.ts";
import { userName } from "../src/support/user_name.ts";
import { type Call, defineCommand } from "./command.ts";
import type { ExitCode } from "./exit_codes.ts";

const settings = {
  store: setting(text("file"), {
    flag: "--store",
    help: "the file that remembers the highest token, beside what it protects; made when it is not there",
  }),
  token: setting(text("number"), {
    flag: "--token",
    help: "the token to go by",
    unset: "BATON_FENCING_TOKEN, which baton lock sets",
  }),
  try: setting(toggle(), { flag: "-n, --try", help: "do not wait: exit 75 when the store is busy", default: false }),
  wait: setting(duration(), { flag: "-w, --wait", help: "how long to wait for the store; then exit 75" }),
} satisfies SettingTable;

export const fenceCommand = defineCommand({
  name: "fence",
  summary: "run a command unless the lock it works under was granted anew since",
  usage: "run --store FILE [options] -- COMMAND [ARGUMENT…]",
  details: [
    "Every grant of a lock has a higher token than the one before. The store remembers the highest it has seen: a command " +
    "with a lower one is not run (86), because its lock was granted to somebody else since, while its machine stood still. " +
    "The store is held while the command runs, so that nobody with a newer token works beside it; that holds also when " +
    "baton is killed, for as long as the command and what inherits its descriptors run.",
    "All who write to what the store protects have to go through it. The file needs a file system with flock(2).",
  ],
  examples: [
    [
      "baton lock nightly -- sh -c 'prepare; baton fence run --store /srv/db/fence -- ./write.sh'",
      "write.sh does not run when nightly was lost and granted again in the meantime",
    ],
    ["baton fence run --store ./fence --token 42 -- ./write.sh", "with a token from elsewhere"],
  ],
  settings,
  completes: ["run"],
  run: fence,
});

async function fence({ values, names, command, io }: Call<typeof settings>): Promise<ExitCode> {
  const example = "as in: baton fence run --store FILE -- COMMAND";
  if (names.length !== 1 || names[0] !== "run") {
    throw new BatonError("USAGE", `baton fence takes one word, run, not "${names.join(" ")}", ${example}`);
  }
  if (values.store === undefined) throw new BatonError("USAGE", `baton fence run needs --store, ${example}`);
  if (command === null || command.length === 0) {
    throw new BatonError("USAGE", `baton fence run needs a command behind --, ${example}`);
  }
  if (values.try && values.wait !== undefined) throw new BatonError("USAGE", "-n and -w do not go together");
  const by = `${userName()}@${hostname()}:${process.pid}`;
  const ending = await runUnderStore({
    storePath: values.store,
    token: { token: tokenOf(values.token, io.env["BATON_FENCING_TOKEN"]), by, at: new Date().toISOString() },
    waitMs: values.try ? 0 : values.wait,
    command,
    descriptors: io.inheritedFds,
    clock: systemClock(),
    signals: processSignals(),
  });
  return exitCodeOfEnd(ending);
}

function tokenOf(flag: string | undefined, variable: string | undefined): bigint {
  if (flag !== undefined) return parseToken(flag, "--token");
  if (variable === undefined || variable === "") {
    throw new BatonError(
      "USAGE",
      "There is no token: run it under baton lock, which sets BATON_FENCING_TOKEN, or give --token",
    );
  }
  if (variable.includes("\n")) {
    throw new BatonError(
      "USAGE",
      "BATON_FENCING_TOKEN has one token for each of several locks: say with --token which",
    );
  }
  return parseToken(variable, "BATON_FENCING_TOKEN");
}

function exitCodeOfEnd(ending: UnderStore): ExitCode {
  switch (ending.kind) {
    case "exited":
      return ending.code;
    case "signaled":
      return 128 + ending.signalNumber;
    case "unreadable":
      throw new BatonError("INTERNAL", `The command has ended, and how is not known: ${ending.why}`);
    case "not_found":
      throw new BatonError("NOT_FOUND", ending.message);
    case "not_executable":
      throw new BatonError("NOT_EXECUTABLE", ending.message);
    case "start_failed":
      throw new BatonError("START_FAILED", ending.message);
  }
}

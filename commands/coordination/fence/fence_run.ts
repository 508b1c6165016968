/** `baton fence run`: runs a command, unless the store contains a higher fencing token. */
import { hostname } from "node:os";
import { ownSignalSource, StoppedBySignal } from "../../../src/base/process/supervise/signal_source.ts";
import { type FencedCommandEnd, runFencedCommand } from "../../../src/coordination/fence/run_fenced.ts";
import { parseFencingToken } from "../../../src/coordination/fence/token_slots.ts";
import { BatonError } from "../../../src/base/errors.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { ownUserName } from "../../../src/base/support/user_name.ts";
import type { CommandCall } from "../../command.ts";
import type { ExitCode } from "../../../src/base/exit_codes.ts";
import { commandStartErrorCodes, signalToMirror } from "../../../src/coordination/job/lock_ending.ts";
import type { fenceSettings } from "./fence_options.ts";

export async function runFenceRun(
  { values, names, command, io }: CommandCall<typeof fenceSettings>,
): Promise<ExitCode> {
  const example = "as in: baton fence run --store FILE COMMAND";
  if (names.length > 1) {
    throw new BatonError(
      "USAGE",
      `unexpected argument "${names.slice(1).join(" ")}": put the command after --, ${example}`,
    );
  }
  if (values.store === undefined) throw new BatonError("USAGE", `baton fence run needs --store, ${example}`);
  if (command === null || command.length === 0) {
    throw new BatonError("USAGE", `baton fence run needs a command, ${example}`);
  }
  if (values.try && values.wait !== undefined) throw new BatonError("USAGE", "-n and -w cannot be used together");
  const by = `${ownUserName()}@${hostname()}:${process.pid}`;
  const ending = await runFencedCommand({
    storePath: values.store,
    token: { token: tokenOf(values.token, io.env["BATON_FENCING_TOKEN"]), by, at: new Date().toISOString() },
    waitMs: values.try ? 0 : values.wait,
    command,
    descriptors: io.inheritedFds,
    clock: systemClock(),
    signals: ownSignalSource(),
  });
  return exitCodeOfEnd(ending);
}

function tokenOf(flag: string | undefined, variable: string | undefined): bigint {
  if (flag !== undefined) return parseFencingToken(flag, "--token");
  if (variable === undefined || variable === "") {
    throw new BatonError(
      "USAGE",
      "There is no fencing token: use --token, or run this under baton lock, which sets BATON_FENCING_TOKEN",
    );
  }
  if (variable.includes("\n")) {
    throw new BatonError(
      "USAGE",
      "BATON_FENCING_TOKEN has the tokens of several locks: select one with --token",
    );
  }
  return parseFencingToken(variable, "BATON_FENCING_TOKEN");
}

function exitCodeOfEnd(ending: FencedCommandEnd): ExitCode {
  switch (ending.kind) {
    case "exited":
      return ending.code;
    case "signaled": {
      const signal = signalToMirror(ending);
      if (signal !== null) throw new StoppedBySignal(signal);
      return 128 + ending.signalNumber;
    }
    case "unreadable":
      throw new BatonError("INTERNAL", `The command has ended, but its exit status is unknown: ${ending.why}`);
    default:
      throw new BatonError(commandStartErrorCodes[ending.kind], ending.message);
  }
}

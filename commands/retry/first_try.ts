/** The first try of `baton retry-processor call`: runs the command, or sends the request, with the body. */
import { closeSync } from "node:fs";
import process from "node:process";
import type { ChildOutcome } from "../../src/base/process/spawn/child_outcome.ts";
import { LocalLease } from "../../src/base/process/local_lease.ts";
import { processSignals, StoppedBySignal, StopRequest } from "../../src/base/process/supervise/signal_source.ts";
import { superviseChild } from "../../src/base/process/supervise/supervise_child.ts";
import { stderrSentencePrinter } from "../../src/base/terminal/io.ts";
import { startGuard } from "../../src/base/process/guard/guard.ts";
import type { TryEnd } from "../../src/retry/queue/message_life.ts";
import type { MessageHead } from "../../src/retry/queue/stored_message.ts";
import { outcomeOfExit, type RetryRules } from "../../src/retry/targets/outcome.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { openMessageBodyFile } from "../../src/base/process/spawn/unnamed_file.ts";
import { describeCommandEnd } from "../../src/retry/targets/run_with_input.ts";
import { type ExitCode, toExitCode } from "../../src/base/exit_codes.ts";
import { signalToMirror } from "../../src/coordination/job/lock_ending.ts";
import { leftoversMessage } from "../../src/base/process/supervise/leftovers.ts";
import type { CallCall } from "./call_options.ts";

/** The result of a first try. */
export interface FirstTryResult {
  /** The request that is stored if the try failed. */
  readonly head: MessageHead;
  /** The name of the program, or the request, for messages. */
  readonly what: string;
  /** How it ended, as the end of a sentence after `what`. */
  readonly how: string;
  readonly outcome: TryEnd["outcome"];
  readonly retryAfterMs: number | null;
  /** The exit code if the failure is final, or cannot be stored; for a success, if its response is incomplete. */
  readonly code: ExitCode;
  /** The response was cut off, or could not be printed. */
  readonly isCut?: boolean;
  /** The signal by which baton ends in place of this exit code. */
  readonly signal?: NodeJS.Signals | null;
  /** A process of the command may still run, so the message must not be tried again. */
  readonly mayStillRun?: boolean;
}

/** Longer than any command runs. If baton dies, the guard kills the command. */
const guardMs = 100 * 365 * 86_400_000;

/** Signals by which a user interrupts the command, which is not a failure of the message. */
const interruptions: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGQUIT"]);

export async function tryCommand(
  call: CallCall,
  command: readonly string[],
  { body, rules }: { readonly body: Uint8Array; readonly rules: RetryRules },
): Promise<FirstTryResult> {
  const end = await runCommandOnce(call, command, body);
  const { code: endCode, how } = describeCommandEnd(end, call.values.retryAttemptTimeout);
  const code = typeof endCode === "number" ? endCode : toExitCode(endCode);
  return {
    head: { kind: "command", argv: command, cwd: process.cwd() },
    what: command[0] ?? "",
    how,
    outcome: outcomeOfExit(code, rules),
    retryAfterMs: null,
    code,
    signal: signalToMirror(end),
    mayStillRun: end.kind === "breach" && !end.isDead,
  };
}

async function runCommandOnce(
  { values, io }: CallCall,
  command: readonly string[],
  body: Uint8Array,
): Promise<ChildOutcome> {
  const clock = systemClock();
  const signals = processSignals();
  using stop = new StopRequest(signals);
  const reads = !values.noStdin && !io.stdinIsTerminal;
  const input = reads ? openMessageBodyFile(body) : null;
  try {
    const outcome = await superviseChild({
      command,
      env: {},
      lease: new LocalLease(clock, guardMs),
      clock,
      guard: startGuard(stderrSentencePrinter(io)),
      signals,
      descriptors: io.inheritedFds,
      killAfterMs: values.killAfter,
      stopSignal: "SIGTERM",
      onDoubt: "ignore",
      maxHoldMs: values.retryAttemptTimeout,
      foreground: "auto",
      onEvent(event) {
        const leftovers = leftoversMessage(event, "command");
        if (leftovers !== null && !values.quiet) io.err(`baton: ${leftovers}\n`);
      },
      signal: stop.signal,
      ...(input === null ? {} : { input }),
      ...(values.noStdin ? { readsNothing: true } : {}),
    });
    if (outcome.kind === "cancelled") throw stop.signal.reason;
    const signal = signalToMirror(outcome);
    // The terminal signals both processes: the command may have ended before this one has received the signal.
    if (signal !== null && interruptions.has(signal)) {
      io.err(`baton: ${command[0]} was interrupted; NOT STORED\n`);
      throw new StoppedBySignal(signal);
    }
    return outcome;
  } finally {
    if (input !== null) closeSync(input);
  }
}

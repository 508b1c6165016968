/**
 * Runs the command of `baton retry-processor call` with the body as its stdin, which is the first try of its message.
 */
import { closeSync } from "node:fs";
import process from "node:process";
import type { ChildOutcome } from "../../src/base/process/spawn/child_outcome.ts";
import { LocalLease } from "../../src/base/process/local_lease.ts";
import {
  ownSignalSource,
  StoppedBySignal,
  StopRequestListener,
} from "../../src/base/process/supervise/signal_source.ts";
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
import { leftoverProcessesMessage } from "../../src/base/process/supervise/leftovers.ts";
import type { RetryCallCommandCall } from "./call_options.ts";

export interface FirstTryResult {
  /** The data that is stored with the body if the try fails. */
  readonly head: MessageHead;
  /** The name of the program or of the request, as messages show it. */
  readonly what: string;
  /** Says how the try ended. The text follows `what` in a sentence. */
  readonly how: string;
  readonly outcome: TryEnd["outcome"];
  readonly retryAfterMs: number | null;
  /**
   * The exit code if the failure is final or cannot be stored, and if the try succeeded but its response is incomplete.
   */
  readonly code: ExitCode;
  /** True if the response was interrupted or could not be printed. */
  readonly isCut?: boolean;
  /** The signal that ends baton; null or undefined if baton ends with an exit code. */
  readonly signal?: NodeJS.Signals | null;
  /** True if a process of the command may still run. Then the message must not be tried again. */
  readonly mayStillRun?: boolean;
}

/**
 * How long the lease lasts, in milliseconds: longer than any command runs. If baton dies, the guard kills the command.
 */
const guardMs = 100 * 365 * 86_400_000;

/** The signals with which a user interrupts the command. Then the message has not failed. */
const interruptions: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGQUIT"]);

export async function tryCommand(
  call: RetryCallCommandCall,
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
  { values, io }: RetryCallCommandCall,
  command: readonly string[],
  body: Uint8Array,
): Promise<ChildOutcome> {
  const clock = systemClock();
  const signals = ownSignalSource();
  using stop = new StopRequestListener(signals);
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
        const leftovers = leftoverProcessesMessage(event, "command");
        if (leftovers !== null && !values.quiet) io.err(`baton: ${leftovers}\n`);
      },
      signal: stop.signal,
      ...(input === null ? {} : { input }),
      ...(values.noStdin ? { readsNothing: true } : {}),
    });
    if (outcome.kind === "cancelled") throw stop.signal.reason;
    const signal = signalToMirror(outcome);
    // The terminal sends the signal to both processes, so the command may end before baton receives the signal.
    if (signal !== null && interruptions.has(signal)) {
      io.err(`baton: ${command[0]} was interrupted; NOT STORED\n`);
      throw new StoppedBySignal(signal);
    }
    return outcome;
  } finally {
    if (input !== null) closeSync(input);
  }
}

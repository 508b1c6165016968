/** `baton retry-processor call`: one try now; the message is stored if it fails. Exit code 75 means that it is on the disk. */
import process from "node:process";
import { retryLimitSettings, retryPolicySettings, retryStoreSettings } from "../../src/config/retry_settings.ts";
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { durationType, textType, toggleType } from "../../src/config/value_types.ts";
import { type Call, defineCommand, shellLineSettings } from "../command.ts";
import { type ExitCode, exitCodeOf, exitCodes } from "../exit_codes.ts";
import { closeSync } from "node:fs";
import type { ChildOutcome } from "../../src/process/spawn/child_outcome.ts";
import { LocalLease } from "../../src/process/supervise/local_lease.ts";
import { processSignals } from "../../src/process/supervise/signal_source.ts";
import { superviseChild } from "../../src/process/supervise/supervise_child.ts";
import { startGuard } from "../../src/process/guard/guard.ts";
import { StoppedBySignal, stopSignals } from "../../src/process/supervise/stop_signals.ts";
import { BatonError, messageOf } from "../../src/errors.ts";
import { outcomeOfExit } from "../../src/retry/targets/outcome.ts";
import { systemClock } from "../../src/support/clock.ts";
import { formatDuration } from "../../src/support/duration.ts";
import { openBodyFile } from "../../src/process/spawn/unnamed_file.ts";
import { describeCommandEnd } from "../../src/retry/targets/run_with_input.ts";
import { DirectStore } from "../../src/retry/queue/direct_store.ts";
import { leftoversMessage } from "../job/leftovers.ts";
import { readBody } from "./read_body.ts";
import { bodyLimitOf, retryRulesOf, storeRulesOf } from "../../src/retry/processor/retry_rules.ts";
import { storeLocationOf } from "./retry_store_location.ts";

export const callSettings = {
  ...shellLineSettings,
  ...retryStoreSettings,
  key: setting(textType("key"), {
    flag: "--key",
    help: "run --order key tries messages with the same key one after the other",
  }),
  noStdin: setting(toggleType(), {
    flag: "--no-stdin",
    help: "give the command an empty stdin and read none: for use in a loop that reads stdin itself",
    default: false,
  }),
  killAfter: setting(durationType(), {
    flag: "--kill-after",
    help: "time between the stop signal and SIGKILL for a command that exceeds --attempt-timeout",
    default: 5000,
  }),
  ...retryPolicySettings,
  ...retryLimitSettings,
} satisfies SettingTable;

export type CallCall = Call<typeof callSettings>;

export const retryCallCommand = defineCommand({
  name: "retry-processor call",
  summary: "run a command now; if it fails, store it and its stdin for later tries",
  usage: "[options] COMMAND [ARGUMENT…]",
  details: [
    "Runs the command with the stdin of baton. If it exits with 0, nothing is stored and the exit code is 0. If it fails and may be " +
    "retried, its arguments, its working directory and its stdin are stored, but not its environment; then the exit code is 75: " +
    "accepted, not delivered yet. baton retry-processor run tries it again.",
    "An exit code that does not improve by repetition (64, 65, 77, 78, 126, 127, or --no-retry-on) makes it a dead letter immediately " +
    "and is passed on. If the message cannot be stored, stderr says NOT STORED and the command's exit code is passed on; 85 if the store is full.",
    "Exit code 75 means that the message is on the disk. After SIGINT nothing is stored.",
    "Use the same policy for call and run: both read the section [retry] of the configuration file.",
  ],
  examples: [
    ["baton retry-processor call --name propagate -- ./propagate.sh <body.json", "first try now; exit code 75: stored"],
    [
      "baton retry-processor call -- baton lock -w 2s articles/7 -- ./propagate.sh 7",
      "if the lock is busy, the call is stored and retried",
    ],
    [
      "baton retry-processor call --key order-7 -- ./send.sh 7 <order.xml",
      "in order with other messages of the same key",
    ],
  ],
  settings: callSettings,
  syntax: { commandAfter: () => true, flagHints: {} },
  storesCommand: true,
  run: runCall,
});

/** Longer than any command runs. If baton dies, the guard kills the command. */
const guardMs = 100 * 365 * 86_400_000;

/** Signals by which a user interrupts the command, which is not a failure of the message. */
const interruptions: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGQUIT"]);

async function runCall(call: CallCall): Promise<ExitCode> {
  const { values, names, command, sources, io } = call;
  const location = storeLocationOf(values, sources);
  const rules = storeRulesOf(values, sources);
  const retryRules = retryRulesOf(values, sources);
  if (names.length > 0) throw new BatonError("USAGE", `unexpected argument "${names[0]}"; put the command after --`);
  if (command === null || command.length === 0) {
    throw new BatonError("USAGE", "missing command; use it as in: baton retry-processor call ./send.sh <body");
  }
  // A wrong configuration is reported before the command runs; a failing disk does not prevent the first try.
  let openError: BatonError | null = null;
  let store: DirectStore | null = null;
  try {
    store = new DirectStore(location.folder, rules, { mustExist: false });
  } catch (error) {
    if (!(error instanceof BatonError) || error.code === "CONFIG") throw error;
    openError = error;
  }
  using _ = store ?? { [Symbol.dispose]() {} };
  const body = values.noStdin || io.stdinIsTerminal ? new Uint8Array() : await readBody(null, bodyLimitOf(values));
  const end = await runFirstTry(call, command, body);
  const { code: endCode, how } = describeCommandEnd(end, values.retryAttemptTimeout);
  const code = typeof endCode === "number" ? endCode : exitCodeOf(endCode);
  const what = `${command[0]} ${how}`;
  if (end.kind === "breach") {
    io.err(`baton: ${what}; NOT STORED, because it may still run\n`);
    return code;
  }
  const outcome = outcomeOfExit(code, retryRules);
  if (outcome === "done") return exitCodes.SUCCESS;
  const print = (sentence: string) => values.quiet || io.err(`baton: ${what}; ${sentence}\n`);
  try {
    if (openError !== null || store === null) throw openError;
    const head = { kind: "command", argv: command, cwd: process.cwd() } as const;
    const tried = { outcome, retryAfterMs: null, error: how } as const;
    const [stored] = store.call("accept", [{ head, body, key: values.key ?? null, tried }], Date.now());
    if (stored === undefined) throw new BatonError("INTERNAL", "nothing was stored");
    const { id, life } = stored;
    const where = `in "${location.name}" as ${id}`;
    if (life.state === "waiting") {
      print(`stored ${where}, next try in ${formatDuration(Math.max(0, life.nextAtMs - Date.now()))}`);
      return exitCodes.BUSY;
    }
    print(life.state === "dead" ? `dead letter ${where} (${life.reason})` : `dropped (${life.reason})`);
    return code;
  } catch (error) {
    io.err(`baton: ${what}; NOT STORED: ${messageOf(error)}\n`);
    return error instanceof BatonError && error.code === "STORE_FULL" ? exitCodeOf(error.code) : code;
  }
}

async function runFirstTry(
  { values, io }: CallCall,
  command: readonly string[],
  body: Uint8Array,
): Promise<ChildOutcome> {
  const clock = systemClock();
  const signals = processSignals();
  const heard = new Set<NodeJS.Signals>();
  const stopping = new AbortController();
  const unlisten = signals.listen(stopSignals, (signal) => {
    heard.add(signal);
    stopping.abort(new StoppedBySignal(signal));
  });
  const reads = !values.noStdin && !io.stdinIsTerminal;
  const input = reads ? openBodyFile(body) : null;
  try {
    const outcome = await superviseChild({
      command,
      env: {},
      lease: new LocalLease(clock, guardMs),
      clock,
      guard: startGuard(),
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
      signal: stopping.signal,
      ...(input === null ? {} : { input }),
      ...(values.noStdin ? { readsNothing: true } : {}),
    });
    if (outcome.kind === "cancelled") throw stopping.signal.reason;
    const interruption = [...heard].find((signal) => interruptions.has(signal));
    if (interruption !== undefined && outcome.kind === "signaled" && outcome.signal === interruption) {
      io.err(`baton: ${command[0]} was interrupted; NOT STORED\n`);
      throw new StoppedBySignal(interruption);
    }
    return outcome;
  } finally {
    unlisten();
    if (input !== null) closeSync(input);
  }
}

/** `baton retry-processor call`: one try now; the message is stored if it fails. Exit code 75 means that it is on the disk. */
import process from "node:process";
import { retryLimitSettings, retryPolicySettings, retryStoreSettings } from "../../src/config/retry_settings.ts";
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { duration, text, toggle } from "../../src/config/value_types.ts";
import { type Call, defineCommand } from "../command.ts";
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
import { commandEnd } from "../../src/retry/targets/run_with_input.ts";
import { DirectStore } from "../../src/retry/queue/direct_store.ts";
import { readBody } from "./read_body.ts";
import { bodyLimitOf, retryRulesOf, storeRulesOf } from "../../src/retry/processor/retry_rules.ts";
import { storeLocationOf } from "./retry_store_location.ts";

export const callSettings = {
  ...retryStoreSettings,
  key: setting(text("key"), {
    flag: "--key",
    help: "messages with the same key are tried one after the other by run --order key",
  }),
  noStdin: setting(toggle(), {
    flag: "--no-stdin",
    help: "the command reads nothing, and nothing is read for it: for a loop that reads stdin itself",
    default: false,
  }),
  killAfter: setting(duration(), {
    flag: "--kill-after",
    help: "how long a command that ran for --attempt-timeout has to end before it is killed",
    default: 5000,
  }),
  ...retryPolicySettings,
  ...retryLimitSettings,
} satisfies SettingTable;

export type CallCall = Call<typeof callSettings>;

export const retryCallCommand = defineCommand({
  name: "retry-processor call",
  summary: "run a command now; if it fails, store it and its stdin to be tried again",
  usage: "[options] -- CMD…",
  details: [
    "Runs the command with what comes on stdin. When it ends with 0 nothing is stored, and the exit code is 0. When it fails in a " +
    "way that is worth another try, its words, its working directory and its stdin are stored, never its environment; then the " +
    "exit code is 75: accepted, not delivered yet. baton retry-processor run tries it again.",
    "A code that no repetition mends (64, 65, 77, 78, 126, 127, or --no-retry-on) makes it a dead letter at once, and is passed on. " +
    "When it could not be stored stderr says NOT STORED and the command's own code is passed on; 85 when the store is full.",
    "75 is only given when the message is on the disk. Stopped by SIGINT, it stores nothing.",
    "Give call and run the same policy: section [retry] of the configuration file is read by both.",
  ],
  examples: [
    ["baton retry-processor call --name propagate -- ./propagate.sh <body.json", "first try now; 75: it is stored"],
    [
      "baton retry-processor call -- baton lock -w 2s articles/7 -- ./propagate.sh 7",
      "what could not get its lock is tried later",
    ],
    ["baton retry-processor call --key order-7 -- ./send.sh 7 <order.xml", "in order with what has the same key"],
  ],
  settings: callSettings,
  storesCommand: true,
  run: runCall,
});

/** Longer than any command runs; the guard strikes when baton is gone. */
const ownMs = 100 * 365 * 86_400_000;

/** What a user's own interruption is; it is no failure of the message. */
const interruptions: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGQUIT"]);

async function runCall(call: CallCall): Promise<ExitCode> {
  const { values, names, command, sources, io } = call;
  const location = storeLocationOf(values, sources);
  const rules = storeRulesOf(values, sources);
  const retryRules = retryRulesOf(values, sources);
  if (names.length > 0) throw new BatonError("USAGE", `"${names[0]}" is too much: the command stands behind --`);
  if (command === null || command.length === 0) {
    throw new BatonError("USAGE", "A command is missing, as in: baton retry-processor call -- ./send.sh <body");
  }
  // What is wrong with the store is said before anything is run; a disk in trouble keeps no first try back.
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
  const end = await firstTry(call, command, body);
  const { code: endCode, how } = commandEnd(end, values.retryAttemptTimeout);
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

async function firstTry({ values, io }: CallCall, command: readonly string[], body: Uint8Array): Promise<ChildOutcome> {
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
      lease: new LocalLease(clock, ownMs),
      clock,
      guard: startGuard(),
      signals,
      descriptors: io.inheritedFds,
      killAfterMs: values.killAfter,
      stopSignal: "SIGTERM",
      onDoubt: "ignore",
      maxHoldMs: values.retryAttemptTimeout,
      foreground: "auto",
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

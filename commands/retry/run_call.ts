/** The shell's door: one try at once, stored when it fails. 75 is said only of what is on the disk. */
import { closeSync } from "node:fs";
import process from "node:process";
import type { ChildOutcome } from "../../src/process/spawn/child_outcome.ts";
import { OwnTime } from "../../src/process/supervise/local_lease.ts";
import { processSignals } from "../../src/process/supervise/signal_source.ts";
import { superviseChild } from "../../src/process/supervise/supervise_child.ts";
import { startGuard } from "../../src/process/guard/guard.ts";
import { StoppedBySignal, stopSignals } from "../../src/process/supervise/stopped_by_signal.ts";
import { BatonError, messageOf } from "../../src/errors.ts";
import { verdictOfExit } from "../../src/retry/targets/outcome.ts";
import { systemClock } from "../../src/support/clock.ts";
import { formatDuration } from "../../src/support/duration.ts";
import { type ExitCode, exitCodeOf, exitCodes } from "../exit_codes.ts";
import { openBodyFile } from "../../src/process/spawn/input_file.ts";
import type { CallCall } from "./call.ts";
import { commandEndOf } from "./command_end.ts";
import { OpenStore } from "./open_store.ts";
import { readBody } from "./read_body.ts";
import { bodyLimitOf, placeOf, retryRulesOf, storeRulesOf } from "./retry_rules.ts";

/** Longer than any command runs; the guard strikes when baton is gone. */
const ownMs = 100 * 365 * 86_400_000;

/** What a user's own interruption is; it is no failure of the message. */
const interruptions: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGQUIT"]);

export async function runCall(call: CallCall): Promise<ExitCode> {
  const { values, names, command, sources, io } = call;
  const place = placeOf(values, sources);
  const rules = storeRulesOf(values, sources);
  const retryRules = retryRulesOf(values, sources);
  if (names.length > 0) throw new BatonError("USAGE", `"${names[0]}" is too much: the command stands behind --`);
  if (command === null || command.length === 0) {
    throw new BatonError("USAGE", "A command is missing, as in: baton retry-processor call -- ./send.sh <body");
  }
  // What is wrong with the store is said before anything is run; a disk in trouble keeps no first try back.
  let trouble: BatonError | null = null;
  let store: OpenStore | null = null;
  try {
    store = new OpenStore(place.folder, rules, { mustExist: false });
  } catch (error) {
    if (!(error instanceof BatonError) || error.code === "CONFIG") throw error;
    trouble = error;
  }
  using _ = store ?? { [Symbol.dispose]() {} };
  const body = values.noStdin || io.stdinIsTerminal ? new Uint8Array() : await readBody(null, bodyLimitOf(values));
  const outcome = await firstTry(call, command, body);
  const { code, how } = commandEndOf(outcome, values.retryAttemptTimeout);
  const verdict = outcome.kind === "breach" ? "final" : verdictOfExit(code, retryRules);
  if (verdict === "done") return exitCodes.SUCCESS;
  const what = `${command[0]} ${how}`;
  if (outcome.kind === "breach") {
    io.err(`baton: ${what}; NOT STORED, for it may still run\n`);
    return code;
  }
  const say = (words: string) => values.quiet || io.err(`baton: ${what}; ${words}\n`);
  try {
    if (trouble !== null || store === null) throw trouble;
    const head = { kind: "command", argv: command, cwd: process.cwd() } as const;
    const tried = { verdict, retryAfterMs: null, error: how } as const;
    const [stored] = store.call("accept", [{ head, body, key: values.key ?? null, tried }], Date.now());
    if (stored === undefined) throw new BatonError("INTERNAL", "nothing was stored");
    const { id, life } = stored;
    const where = `in "${place.name}" as ${id}`;
    if (life.state === "waiting") {
      say(`stored ${where}, the next try is due in ${formatDuration(Math.max(0, life.nextAtMs - Date.now()))}`);
      return exitCodes.BUSY;
    }
    say(life.state === "dead" ? `dead letter ${where} (${life.reason})` : `dropped (${life.reason})`);
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
      lease: new OwnTime(clock, ownMs),
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

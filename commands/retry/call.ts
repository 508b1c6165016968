/**
 * Defines `baton retry-processor call`, which tries a message once and stores it if the try fails. Exit code 75 means
 * that the message is on the disk.
 */
import { defineCommand } from "../command.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import { BatonError, errorMessage } from "../../src/base/errors.ts";
import { StoppedBySignal } from "../../src/base/process/supervise/signal_source.ts";
import { formatDuration } from "../../src/base/support/duration.ts";
import { isStorePaused, lacksProcessor, pausedHint, shownStoreName, startProcessorHint } from "./processor_hint.ts";
import { mayBeStored } from "../../src/retry/queue/stored_message.ts";
import type { CommandStore } from "../../src/retry/queue/store_methods.ts";
import { openCommandStore } from "../../src/retry/queue/open_retry_store.ts";
import { callSettings, type RetryCallCommandCall } from "./call_options.ts";
import { type FirstTryResult, tryCommand } from "./first_try.ts";
import { checkHttpOptions } from "./http_options.ts";
import { readBody } from "./read_body.ts";
import { readRetryRules, readStoreRules } from "../../src/retry/processor/retry_rules.ts";
import { readStoreLocation } from "../../src/retry/queue/retry_store_location.ts";

export const retryCallCommand = defineCommand({
  name: "retry-processor call",
  summary: "run a command or send a request now; if it fails, store it and its stdin for later tries",
  usage: "[options] COMMAND [ARGUMENT…] | --url URL [options]",
  details: [
    "Runs the command with the stdin of baton. If it exits with 0, nothing is stored and the exit code is 0. If it " +
    "fails and may be retried, its arguments, its working directory and its stdin are stored, but not its " +
    "environment; then the exit code is 75: accepted, not delivered yet. baton retry-processor run tries it again.",
    "Exit codes that a retry cannot fix (64, 65, 77, 78, 126, 127; see --no-retry-on) make the call a dead letter " +
    "immediately; call exits with the same code. If the message cannot be stored, stderr says NOT STORED and the " +
    "command's exit code is passed on, or 74 if it is 75; 85 if the store is full; MAY BE STORED and 76 if the " +
    "disk fails while it is stored.",
    "--url sends stdin as a request instead. A response with 2xx is printed on stdout, with exit code 0, or 74 if " +
    "it is cut off: the request was accepted. If there is none, or with 408, 425, 429 and 5xx, the request is " +
    "stored with its URL, method and headers (75). 307 and 308 are followed, other redirections with --follow. Any " +
    "other status is final: a dead letter; the response is printed, with exit code 77 for 401, 403 and 407, " +
    "otherwise 65. All tries of a request have the same Idempotency-Key.",
    "Exit code 75 means that the message is on the disk. After SIGINT nothing is stored.",
  ],
  examples: [
    ["baton retry-processor call --url http://backend:9000/stock <order.json", "by HTTP; exit code 75: stored"],
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

async function runCall(call: RetryCallCommandCall): Promise<ExitCode> {
  const { values, sources, io } = call;
  const location = readStoreLocation(values, sources);
  const rules = readStoreRules(values, sources);
  const tryOnce = await firstTryOf(call);
  // A wrong configuration ends the call before the first try. A failing disk does not prevent the first try.
  let openError: BatonError | null = null;
  let store: CommandStore | null = null;
  try {
    store = await openCommandStore(location, { rules, mustExist: false });
  } catch (error) {
    if (!(error instanceof BatonError) || error.code === "CONFIG") throw error;
    openError = error;
  }
  await using _ = store;
  const body = values.noStdin || io.stdinIsTerminal ? new Uint8Array() : await readBody(null, values.retryMaxBody);
  const result = await tryOnce(body);
  const ownCode = await settleTry(call, result, { body, store: openError ?? store });
  if (ownCode !== null) return ownCode;
  if (result.signal) throw new StoppedBySignal(result.signal);
  return result.code;
}

/**
 * Stores the message of a failed try. Returns baton's exit code; null if the exit code of the command is passed on. A
 * failure to store is reported by the exit code, not by a rejection.
 */
async function settleTry(
  { values, io }: RetryCallCommandCall,
  { head, what, how, outcome, retryAfterMs, code, mayStillRun = false, isCut = false }: FirstTryResult,
  { body, store }: {
    readonly body: Uint8Array;
    /** The open store, or the error why it could not be opened. */
    readonly store: CommandStore | BatonError | null;
  },
): Promise<ExitCode | null> {
  if (mayStillRun) {
    io.err(`baton: ${what} ${how}; NOT STORED, because it may still run\n`);
    return notStored(code);
  }
  if (outcome === "done") return isCut ? code : exitCodes.SUCCESS;
  const isOpen = store !== null && !(store instanceof BatonError);
  const print = (sentence: string) => values.quiet || io.err(`baton: ${what} ${how}; ${sentence}\n`);
  try {
    if (!isOpen) throw store;
    const tried = { outcome, retryAfterMs, error: how } as const;
    const [stored] = await store.call("accept", [{ head, body, key: values.key ?? null, tried }], Date.now());
    if (stored === undefined) throw new BatonError("INTERNAL", "nothing was stored");
    const { id, life } = stored;
    const where = `in "${shownStoreName(values)}" as ${id}`;
    if (life.state === "waiting") {
      if (values.quiet) return exitCodes.BUSY;
      const next = await isStorePaused(store)
        ? `the store is ${pausedHint(values)}`
        : `next try in ${formatDuration(Math.max(0, life.nextAtMs - Date.now()))}`;
      const isAlone = await lacksProcessor(store);
      print(
        `stored ${where}, ${isAlone ? `${next}, but no processor is running: ${startProcessorHint(values)}` : next}`,
      );
      return exitCodes.BUSY;
    }
    print(life.state === "dead" ? `dead letter ${where} (${life.reason})` : `dropped (${life.reason})`);
    return null;
  } catch (error) {
    const errorCode = error instanceof BatonError ? error.code : null;
    if (isOpen && mayBeStored(error)) {
      io.err(`baton: ${what} ${how}; MAY BE STORED: ${errorMessage(error)}\n`);
      return exitCodes.OUTCOME_UNKNOWN;
    }
    io.err(`baton: ${what} ${how}; NOT STORED: ${errorMessage(error)}\n`);
    return errorCode === "STORE_FULL" ? exitCodes.STORE_FULL : notStored(code);
  }
}

/**
 * Returns the code that replaces an exit code which would wrongly say that the message is stored. Returns null for
 * other codes, which are passed on.
 */
function notStored(code: ExitCode): ExitCode | null {
  return code === exitCodes.BUSY ? exitCodes.IO : null;
}

async function firstTryOf(call: RetryCallCommandCall): Promise<(body: Uint8Array) => Promise<FirstTryResult>> {
  const { values: { url }, names, command, sources } = call;
  const rules = readRetryRules(call.values, sources, { exits: url === undefined, statuses: url !== undefined });
  checkHttpOptions("call", url, sources.flags);
  if (names.length > 0) throw new BatonError("USAGE", `unexpected argument "${names[0]}"; put the command after --`);
  if (url !== undefined) {
    if (command !== null) throw new BatonError("USAGE", `call: use only one of --url and a command ("${command[0]}")`);
    const { makeUrlTry } = await import("./first_request.ts");
    return makeUrlTry(call, url, rules);
  }
  if (command === null || command.length === 0) {
    const examples = "baton retry-processor call ./send.sh <body, or: call --url http://backend:9000/stock <body";
    throw new BatonError("USAGE", `missing command; use it as in: ${examples}`);
  }
  const [program = ""] = command;
  if (/^https?:\/\//.test(program)) {
    throw new BatonError("USAGE", `call: "${program}" is a URL: write --url ${program}`);
  }
  return (body) => tryCommand(call, command, { body, rules });
}

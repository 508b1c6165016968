/**
 * Defines `baton retry-processor submit`, which stores messages from a file or stdin. All messages that its result
 * counts are on the disk.
 */
import process from "node:process";
import { retryLimitSettings, retryStoreSettings } from "../../src/retry/settings/retry_settings.ts";
import { flagSetting, type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { textType } from "../../src/base/config/value_types.ts";
import { type CommandCall, defineCommand } from "../command.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import { resolve } from "node:path";
import { StopRequestListener } from "../../src/base/process/supervise/signal_source.ts";
import { ProgressLine, progressSettings } from "../../src/base/terminal/progress.ts";
import { BatonError } from "../../src/base/errors.ts";
import { splitInputIntoMessages } from "../../src/pubsub/client/split_items.ts";
import { openServiceStore } from "../../src/retry/queue/open_retry_store.ts";
import type { MessageHead, NewMessage } from "../../src/retry/queue/stored_message.ts";
import { countWithNoun } from "../../src/base/support/text.ts";
import { throwIfAborted } from "../../src/base/support/abort.ts";
import type { RetrySubmitJson } from "../json_shapes/retry_shapes.ts";
import { requireInputFile } from "../input_files.ts";
import { readBody, readInputChunks } from "./read_body.ts";
import { readOnlyRules } from "../../src/retry/queue/store_rules.ts";
import { printJson } from "../../src/base/terminal/io.ts";
import { readStoreLocation } from "../../src/retry/queue/retry_store_location.ts";
import type { ServiceStore, StoreClient } from "../../src/retry/queue/store_methods.ts";
import { isStorePaused, lacksProcessor, pausedHint, shownStoreName, startProcessorHint } from "./processor_hint.ts";

export const submitSettings = {
  ...retryStoreSettings,
  lines: toggleSetting("--lines", { help: "one message from each line, without its newline" }),
  key: flagSetting("--key", textType("key"), {
    help: "run --order key tries messages with the same key one after the other",
  }),
  json: toggleSetting("--json", { help: "print the result as one JSON object" }),
  ...progressSettings,
  ...retryLimitSettings,
} satisfies SettingTable;

export type SubmitCall = CommandCall<typeof submitSettings>;

export const retrySubmitCommand = defineCommand({
  name: "retry-processor submit",
  summary: "store a message, or one from each line, for run",
  usage: "[FILE] [options] [-- CMD…]",
  details: [
    "Stores FILE, or stdin (-, or no FILE), as one message and prints its id when it is on the disk; with --lines " +
    "one message from each line. The message is not tried yet: its first try is one of N+1. Its command follows " +
    "--; without one run needs --exec, --url or --topic.",
    "If --lines is interrupted, stderr says how many lines are stored: always the first ones, without gaps.",
  ],
  examples: [
    ["baton retry-processor submit order.xml --name orders", "one message; its id on stdout"],
    [
      "baton retry-processor submit --lines <ids.txt -- ./propagate.sh",
      "one message from each line, with this command",
    ],
  ],
  settings: submitSettings,
  storesCommand: true,
  completes: "files",
  run: runSubmit,
});

const newline = 10;

async function runSubmit(call: SubmitCall): Promise<ExitCode> {
  const { values, names, command, sources, io } = call;
  if (names.length > 1) throw new BatonError("USAGE", `unexpected argument "${names[1]}"; submit takes one FILE`);
  const location = readStoreLocation(values, sources);
  const [file] = names;
  const path = file === undefined || file === "-" ? null : resolve(file);
  if (path !== null) requireInputFile(path);
  if (path === null && io.stdinIsTerminal && !values.quiet) {
    io.err("baton: reading the message from the terminal; end it with ^D\n");
  }
  const head: MessageHead = {
    kind: "command",
    argv: command,
    cwd: command === null ? null : process.cwd(),
  };
  using stop = new StopRequestListener();
  const { retryMaxBytes: maxBytes, retryMaxMessages: maxMessages } = values;
  await using store = await openServiceStore(location, { rules: { ...readOnlyRules, maxBytes, maxMessages } });
  const bytesMax = values.retryMaxBody;
  const makeMessage = (body: Uint8Array): NewMessage => {
    if (body.byteLength > bytesMax) {
      throw new BatonError(
        "BAD_DATA",
        `A line of ${body.byteLength} bytes is longer than the limit of ${bytesMax} bytes (--max-body)`,
      );
    }
    return { head, body, key: values.key ?? null, tried: null };
  };
  if (!values.lines) {
    const body = await readBody(path, bytesMax);
    throwIfAborted(stop.signal);
    const [{ id } = { id: "" }] = await store.call("accept", [makeMessage(body)], Date.now());
    printResult(call, { stored: 1, first: id, last: id });
    if (!values.json) io.out(`${id}\n`);
    await warnIfNotTried(call, store);
    return exitCodes.SUCCESS;
  }
  const progress = new ProgressLine(call, { noun: "message", verb: "stored", total: null });
  const lines = new MessageSubmission(store, { makeMessage, onStored: (count) => progress.add(count) });
  try {
    for await (const items of splitInputIntoMessages(readInputChunks(path), newline)) {
      throwIfAborted(stop.signal);
      await lines.add(items);
    }
    await lines.end();
  } catch (error) {
    await lines.settle();
    progress[Symbol.dispose]();
    printResult(call, lines);
    io.err(`baton: ${countWithNoun(lines.stored, "line is", "lines are")} stored, the rest is not\n`);
    throw error;
  }
  progress[Symbol.dispose]();
  printResult(call, lines);
  if (!values.json && !values.quiet) {
    io.err(
      `baton: ${countWithNoun(lines.stored, "message is", "messages are")} stored in "${shownStoreName(values)}"\n`,
    );
  }
  await warnIfNotTried(call, store);
  return exitCodes.SUCCESS;
}

/**
 * Says on stderr that the stored messages are not tried now. This is not an error: a processor may be started later, or
 * from cron.
 */
async function warnIfNotTried({ values, io }: SubmitCall, store: ServiceStore): Promise<void> {
  if (values.quiet) return;
  if (await isStorePaused(store)) io.err(`baton: the store is ${pausedHint(values)}\n`);
  if (await lacksProcessor(store)) io.err(`baton: no processor is running: ${startProcessorHint(values)}\n`);
}

function printResult(
  { values, io }: SubmitCall,
  { stored, first, last }: Omit<RetrySubmitJson, "version" | "name">,
): void {
  if (values.json) printJson<RetrySubmitJson>(io, { version: 1, name: values.retryName, stored, first, last });
}

/** Limits of one transaction. */
const chunkMessages = 512;
const chunkBytes = 4 << 20;

interface SubmissionOptions {
  /** Makes a message. If it throws, earlier messages are either stored or not, as after an interruption. */
  readonly makeMessage: (body: Uint8Array) => NewMessage;
  readonly onStored: (count: number) => void;
}

/** Stores new messages in their order, many in one transaction. */
class MessageSubmission {
  stored = 0;
  first: string | null = null;
  last: string | null = null;
  readonly #store: StoreClient;
  readonly #options: SubmissionOptions;
  #chunk: NewMessage[] = [];
  #bytes = 0;
  #sending: Promise<void> = Promise.resolve();

  constructor(store: StoreClient, options: SubmissionOptions) {
    this.#store = store;
    this.#options = options;
  }

  async add(bodies: readonly Uint8Array[]): Promise<void> {
    for (const body of bodies) {
      // Copies the body, because sending a view to the thread would send its whole buffer.
      this.#chunk.push(this.#options.makeMessage(body.slice()));
      this.#bytes += body.byteLength;
      if (this.#chunk.length >= chunkMessages || this.#bytes >= chunkBytes) await this.#send();
    }
  }

  async end(): Promise<void> {
    if (this.#chunk.length > 0) await this.#send();
    await this.#sending;
  }

  /** Waits for the transaction in progress, whether it succeeds or not. */
  async settle(): Promise<void> {
    await this.#sending.catch(() => {});
  }

  /**
   * Sends the next transaction. Waits for the previous one, so that no message is stored after a refused message. New
   * messages can be added during this wait.
   */
  async #send(): Promise<void> {
    const messages = this.#chunk;
    this.#chunk = [];
    this.#bytes = 0;
    await this.#sending;
    this.#sending = this.#store.call("accept", messages, Date.now()).then((stored) => {
      this.first ??= stored[0]?.id ?? null;
      this.last = stored.at(-1)?.id ?? this.last;
      this.stored += stored.length;
      this.#options.onStored(stored.length);
    });
    this.#sending.catch(() => {}); // awaited by the next call
  }
}

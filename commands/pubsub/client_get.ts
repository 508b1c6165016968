/**
 * Fetches messages and delivers them, for `get`, `peek` and `baton subscribe`. A message counts as delivered when it
 * has reached its destination.
 */
import { messageLossSentence } from "../../src/pubsub/client/message_loss.ts";
import { BatonError } from "../../src/base/errors.ts";
import { makeMessageFolder, MessageFolder } from "../../src/pubsub/client/message_folder.ts";
import { type MessageFetchResult, type ReceivedMessage, Subscriber } from "../../src/pubsub/client/subscriber.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { countWithNoun } from "../../src/base/support/text.ts";
import { sleep } from "../../src/base/support/deadline.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import { connectionSecretVariables } from "../../src/coordination/settings/coordination_settings.ts";
import { chooseProgressForm, ProgressLine } from "../../src/base/terminal/progress.ts";
import { mirroredSignals } from "../../src/coordination/job/lock_ending.ts";
import { StoppedBySignal } from "../../src/base/process/supervise/signal_source.ts";
import { MessageCommand } from "./message_command.ts";
import type { PubsubMessageJson } from "../json_shapes/pubsub_shapes.ts";
import type { PubsubClientArguments, PubsubClientRun } from "./client_options.ts";
import { type Io, stderrSentencePrinter } from "../../src/base/terminal/io.ts";
import { isTerminal } from "../../src/base/terminal/output_writer.ts";
import { throwIfAborted } from "../../src/base/support/abort.ts";

/** The most messages of one response. */
const batchMax = 256;
const followWaitMs = 3_600_000;
/** How long to wait before the next request if no proxy has responded within --timeout, in milliseconds. */
const retryEveryMs = 1000;

/** Delivers messages, in order. Returns the exit code with which baton has to end; null if it continues. */
type Sink = (fetched: MessageFetchResult) => Promise<ExitCode | null>;

type GetValue =
  | ("count" | "wait" | "follow" | "untilEmpty" | "outDir" | "exec" | "ack" | "lines" | "null" | "json")
  | ("progress" | "quiet" | "verbose" | "pubsubTimeout");

/** A running command that gets messages: `get`, `peek` or `baton subscribe`. */
export interface ClientGetRun extends Pick<PubsubClientRun, "client" | "signal"> {
  readonly call: { readonly values: Pick<PubsubClientRun["call"]["values"], GetValue>; readonly io: Io };
  readonly target: Pick<PubsubClientArguments, "operation" | "topic">;
  /** Says what the user can do if the command of --exec fails, as the end of a sentence. */
  readonly failureAdvice?: string;
}

export async function runClientGet(run: ClientGetRun): Promise<ExitCode> {
  const { call: { values, io }, target, client, signal } = run;
  const { follow, untilEmpty } = values;
  const peek = target.operation === "peek";
  checkClientGetOptions(run);
  const manual = values.ack === "manual";
  const max = manual ? 1 : values.count ?? (follow || untilEmpty ? Infinity : 1);
  const subscriber = new Subscriber(client, target.topic);
  using children = values.exec === undefined ? null : makeMessageCommand(run, values.exec);
  const sink = sinkOf(run, subscriber, children, { single: max === 1, peek: peek || manual });
  using progress = await makeProgressLine(run, max);
  let had = 0;
  for (;;) {
    // The command of --exec may take long for each message, so fewer messages are fetched in advance.
    const wanted = Math.min(max - had, values.exec === undefined ? batchMax : 16);
    const waitMs = follow ? followWaitMs : values.wait;
    const fetched = await requestUntilProxyResponds(
      run,
      () => subscriber.fetch({ max: wanted, waitMs, peek, signal }),
    );
    const { messages, missed, loss } = fetched;
    if (loss !== null) io.err(`baton: ${messageLossSentence(target.topic, loss, missed)}\n`);
    else if (missed > 0) {
      const were = missed === 1 ? "was" : "were";
      io.err(
        `baton: ${
          countWithNoun(missed, "message")
        } of "${target.topic}" ${were} removed from the topic by its retention, or as damaged\n`,
      );
    }
    const code = messages.length === 0 ? null : await sink(fetched);
    if (code !== null) return code;
    had += messages.length;
    progress.add(messages.length);
    if (had >= max || peek || manual) break;
    if (messages.length === 0 && !follow) break;
  }
  if (had > 0 || (untilEmpty && values.wait === 0)) return exitCodes.SUCCESS;
  if (!values.quiet && (values.verbose || io.stderrIsTerminal)) {
    io.err(
      `baton: no message of "${target.topic}" waits for "${client.id}"${
        values.wait > 0 ? "" : "; -w 10s waits for one"
      }\n`,
    );
  }
  return exitCodes.FALSE;
}

/** Makes a progress line. It is visible only if the messages are not printed on the same terminal. */
async function makeProgressLine({ call, target, client, signal }: ClientGetRun, max: number): Promise<ProgressLine> {
  const { outDir, exec, follow } = call.values;
  const isWanted = max > 1 && exec === undefined && (outDir !== undefined || !isTerminal(1));
  let total: number | null = null;
  if (isWanted && !follow && chooseProgressForm(call) !== null) {
    total = Math.min(max, (await client.info(target.topic, { signal })).pending ?? 0);
  }
  return new ProgressLine(call, { noun: "message", verb: "received", total, isWanted });
}

/**
 * Sends a request. If the user gave --follow, also waits until a proxy responds and until servers have room on their
 * disks.
 */
export async function requestUntilProxyResponds<T>(
  { call: { values, io }, signal }: Pick<ClientGetRun, "call" | "signal">,
  request: () => Promise<T>,
): Promise<T> {
  let reported: string | null = null;
  for (;;) {
    try {
      const response = await request();
      if (reported !== null && !values.quiet) io.err("baton: the service responds again\n");
      return response;
    } catch (thrown) {
      const isPassing = thrown instanceof BatonError && ["UNREACHABLE", "STORE_FULL"].includes(thrown.code);
      if (!values.follow || !isPassing) throw thrown;
      if (reported !== thrown.code && !values.quiet) {
        io.err(`baton: ${thrown.message}; trying again until it responds\n`);
      }
      reported = thrown.code;
    }
    await sleep(systemClock(), retryEveryMs, signal);
  }
}

/**
 * Checks the options. Throws USAGE for options that exclude each other, and CANNOT_CREATE if the folder cannot be made.
 */
export function checkClientGetOptions(
  { call: { values }, target: { operation } }: Pick<ClientGetRun, "call" | "target">,
): void {
  const refuse = (why: string) => {
    throw new BatonError("USAGE", `${operation}: ${why}`);
  };
  const ways = [values.outDir, values.exec].filter((way) => way !== undefined).length +
    (values.ack === "manual" ? 1 : 0);
  if (ways > 1) refuse(`use only one of --out-dir, --exec${operation === "get" ? " and --ack manual" : ""}`);
  if (values.exec?.trim() === "") refuse("--exec has no command, so every message would count as delivered");
  if (operation === "peek" && ways > 0) refuse("messages can only be printed");
  const [form] = [values.json && "--json", values.lines && "--lines", values.null && "--null"].filter(Boolean);
  const elsewhere = values.outDir !== undefined ? "--out-dir" : values.exec !== undefined ? "--exec" : null;
  if (form !== undefined && (elsewhere === "--out-dir" || (elsewhere !== null && form === "--json"))) {
    refuse(`${form} formats printed messages, but ${elsewhere} prints none`);
  }
  if (values.follow && values.untilEmpty) refuse("use only one of --follow and --until-empty");
  if (values.ack === "manual" && (values.follow || values.untilEmpty || (values.count ?? 1) > 1)) {
    refuse("--ack manual takes one message; the next one comes after it is acknowledged");
  }
  if (values.outDir !== undefined) makeMessageFolder(values.outDir);
}

/**
 * Returns the function that delivers messages. For `peek`, that function prints a message and does not acknowledge it.
 */
function sinkOf(
  run: ClientGetRun,
  subscriber: Subscriber,
  children: MessageCommand | null,
  { single, peek }: { single: boolean; peek: boolean },
): Sink {
  const { call: { values, io }, target, client } = run;
  const { topic } = target;
  if (values.outDir !== undefined) {
    const folder = new MessageFolder(values.outDir, { state: client.state, topic });
    return ({ messages }) => {
      folder.deliver(messages);
      return Promise.resolve(null);
    };
  }
  if (children !== null) return execSink(run, subscriber, children);
  const end = new TextEncoder().encode(single && !values.json ? separatorOf(values) : values.null ? "\0" : "\n");
  return async ({ messages, missed, loss }) => {
    const last = messages.at(-1)?.id ?? 0;
    if (target.operation !== "peek") subscriber.recordDelivery(last);
    for (const [index, message] of messages.entries()) {
      const gap = index === 0 ? { missed, loss } : { missed: 0, loss: null };
      const content = values.json ? encodeMessageJson(topic, message, gap) : message.body;
      await printMessage(io, end.byteLength === 0 ? content : Buffer.concat([content, end]), run.signal);
      if (!peek && message.id !== last) subscriber.acknowledge(message.id, { durable: false });
    }
    if (!peek) subscriber.acknowledge(last);
    return null;
  };
}

function separatorOf(values: ClientGetRun["call"]["values"]): string {
  return values.null ? "\0" : values.lines ? "\n" : "";
}

function makeMessageCommand({ call, target, client, signal }: ClientGetRun, line: string): MessageCommand {
  const place = `${client.state.path}\n${target.topic}`;
  const secrets = Object.fromEntries(connectionSecretVariables().map((name) => [name, undefined]));
  const env = { ...call.io.env, ...secrets };
  const waitMs = call.values.pubsubTimeout;
  return new MessageCommand({
    line,
    env,
    place,
    waitMs,
    clock: systemClock(),
    signal,
    say: stderrSentencePrinter(call.io),
  });
}

/**
 * Returns a function that passes each message to a command, as the bytes that were put. Only --lines and --null add a
 * separator.
 */
function execSink(
  { call, target: { topic }, signal, failureAdvice }: ClientGetRun,
  subscriber: Subscriber,
  children: MessageCommand,
): Sink {
  const end = new TextEncoder().encode(separatorOf(call.values));
  return async ({ messages }) => {
    for (const message of messages) {
      if (signal.aborted) throw signal.reason;
      subscriber.recordDelivery(message.id);
      const body = end.byteLength === 0 ? message.body : Buffer.concat([message.body, end]);
      const { code, signal: endedBy } = await children.run({ ...message, body }, {
        BATON_TOPIC: topic,
        BATON_MESSAGE_ID: String(message.id),
        BATON_REDELIVERED: message.redelivered ? "1" : "0",
      });
      if (code !== 0) {
        if (signal.aborted) throw signal.reason;
        if (!call.values.quiet) {
          const advice = failureAdvice === undefined ? "" : `; ${failureAdvice}`;
          const why = `the command ${endedBy === null ? `exited with ${code}` : `was ended by ${endedBy}`}${advice}`;
          call.io.err(`baton: message ${message.id} of "${topic}" is not acknowledged: ${why}\n`);
        }
        if (endedBy !== null && mirroredSignals.includes(endedBy)) throw new StoppedBySignal(endedBy);
        return code;
      }
      subscriber.acknowledge(message.id);
    }
    return null;
  };
}

function encodeMessageJson(
  topic: string,
  { id, body, redelivered, msgId }: ReceivedMessage,
  gap: Pick<MessageFetchResult, "missed" | "loss">,
): Uint8Array {
  const text = decodeUtf8OrNull(body);
  const content = text === null ? { body_base64: Buffer.from(body).toString("base64") } : { body: text };
  const head = { version: 1, topic, id: String(id), redelivered, msg_id: msgId, ...gap } as const;
  const message: PubsubMessageJson = { ...head, ...content };
  return new TextEncoder().encode(JSON.stringify(message));
}

function decodeUtf8OrNull(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/**
 * How long writing a message may take after a signal, in milliseconds. A message that is written is not delivered
 * again.
 */
const lastWriteMsMax = 300;

/** Prints a message. Resolves when the message is written. Rejects with the signal's reason, ReaderGone, or IO. */
async function printMessage(io: Io, message: Uint8Array, signal: AbortSignal): Promise<void> {
  throwIfAborted(signal);
  io.out(message);
  await io.written("stdout", signal).catch(async (thrown: unknown) => {
    if (thrown !== signal.reason) throw thrown;
    await io.written("stdout", AbortSignal.timeout(lastWriteMsMax)).catch(() => {
      io.drop(); // the message is delivered again
      throw thrown;
    });
  });
}

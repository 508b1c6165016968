/**
 * Puts an input into a topic, for `put` and `baton publish`. At the end, reports how many messages have an unknown
 * outcome.
 */
import { type MessageLossCertainty, messageLossSentence } from "../../src/pubsub/client/message_loss.ts";
import { Publisher } from "../../src/pubsub/client/publisher.ts";
import { countWithNoun } from "../../src/base/support/text.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import { chooseProgressForm, ProgressLine } from "../../src/base/terminal/progress.ts";
import type { PubsubClientCall } from "./client_options.ts";
import type { ClientPutInput } from "./put_input.ts";
import type { PubsubClientSession } from "../../src/pubsub/client/pubsub_client_session.ts";
import { type Io, printJson } from "../../src/base/terminal/io.ts";
import type { PubsubPutJson } from "../json_shapes/pubsub_shapes.ts";
import { shellQuoteIfNeeded } from "../../src/base/support/shell_quote.ts";
import type { TwoStageStopListener } from "../../src/base/process/supervise/two_stage_stop.ts";
import { CleanupScope, onAbort, rejectOnAbort } from "../../src/base/support/abort.ts";
import { systemClock } from "../../src/base/support/clock.ts";

export interface ClientPutRun {
  readonly call: {
    readonly values: Pick<PubsubClientCall["values"], "resume" | "msgId" | "json" | "progress" | "quiet" | "verbose">;
    readonly io: Io;
  };
  readonly topic: string;
  readonly client: PubsubClientSession;
  readonly stop: Pick<TwoStageStopListener, "finish" | "now">;
  /** The messages to put; null if only earlier puts with an unknown outcome are to be sent again. */
  readonly input: ClientPutInput | null;
  /** The start of a command line to recommend, without input and options, such as `baton publish news`. */
  readonly command: string;
}

export interface ClientPutResult {
  /** How many messages this call has put, including those that it sent again. */
  readonly messages: number;
  /** How many of these messages the topic did not store, because no client was subscribed. */
  readonly withoutSubscribers: number;
  readonly loss: MessageLossCertainty | null;
  /** False if messages of a file that was rotated were not put, and will not be by later calls; stderr names them. */
  readonly isComplete: boolean;
}

interface PutProgress {
  /** How many messages earlier calls have put. */
  earlier: number;
  /** How many messages of this call servers have accepted. */
  stored: number;
}

export async function runClientPut(run: ClientPutRun): Promise<ExitCode> {
  return reportClientPut(run, await putInputMessages(run));
}

/** Prints the result as JSON if the user asked for it, and warns if no client gets the messages. */
export function reportClientPut(
  { call: { values, io }, topic }: Pick<ClientPutRun, "call" | "topic">,
  result: ClientPutResult,
): ExitCode {
  const { messages, withoutSubscribers, loss, isComplete } = result;
  if (loss !== null) io.err(`baton: ${messageLossSentence(topic, loss)}\n`);
  const without_subscribers = withoutSubscribers;
  if (values.json) printJson<PubsubPutJson>(io, { version: 1, topic, messages, without_subscribers, loss });
  const code = isComplete ? exitCodes.SUCCESS : exitCodes.BAD_DATA;
  if (withoutSubscribers === 0 || values.quiet) return code;
  const name = shellQuoteIfNeeded(topic);
  io.err(
    `baton: ${countWithNoun(withoutSubscribers, "message")} reached no client: topic "${topic}" has no subscriber; ` +
      `to subscribe: baton subscribe ${name}\n`,
  );
  return code;
}

/** Puts the input. If it fails, prints how much was put and which outcomes are unknown, before the error is thrown. */
export async function putInputMessages(run: ClientPutRun): Promise<ClientPutResult> {
  const { call: { values, io }, topic, client: { state }, input, command } = run;
  const done: PutProgress = { earlier: 0, stored: 0 };
  try {
    return await putInput(run, done);
  } catch (thrown) {
    const left = state.countIntents(topic);
    if (left > 0 && !values.quiet) {
      const them = left === 1 ? "it" : "them";
      const unknown = `the outcome of ${countWithNoun(left, "message")} is unknown`;
      io.err(`baton: ${unknown}; to send ${them} again: ${command} --resume\n`);
    }
    if (values.quiet || input === null || !input.isBulk) throw thrown;
    const count = done.earlier + done.stored;
    const were = `${countWithNoun(count, "message")} of ${input.isStream ? input.source : "the input"} ${
      count === 1 ? "was" : "were"
    } put`;
    if (input.isStream && (done.stored > 0 || left === 0)) io.err(`baton: ${were}; the rest was not\n`);
    else if (!input.isStream && count > 0) io.err(`baton: ${were}; --resume continues after that\n`);
    throw thrown;
  }
}

async function putInput(
  { call, topic, client, stop, input, command }: ClientPutRun,
  done: PutProgress,
): Promise<ClientPutResult> {
  const { values, io } = call;
  const { state } = client;
  let publisher = new Publisher(client, topic);
  const isWanted = input !== null && input.isBulk;
  const total = isWanted && chooseProgressForm(call) !== null ? input.totalBytes() : null;
  using progress = new ProgressLine(call, { noun: "message", verb: "stored", total, countsTotal: false, isWanted });
  using waits = new CleanupScope();
  const signal = limitOfPut(stop, waits);
  const until = stop.finish;
  const inInput = (messages: number, bytes: number) => bytes + messages * (input?.separatorBytes ?? 0);
  const onStored = (messages: number, bytes: number) => progress.add(messages, inInput(messages, bytes));
  let resumed = 0;
  if (values.resume) resumed = await publisher.resume({ signal, until, onStored });
  else warnOfUnknownPutOutcomes(call, { topic, count: state.countIntents(topic), command });
  const tell = (sentence: string) => values.quiet ? undefined : io.err(`baton: ${sentence}\n`);
  const onSkipped = (messages: number, bytes: number) => progress.addEarlierWork(inInput(messages, bytes));
  if (resumed > 0) tell(`put ${countWithNoun(resumed, "message")} again; each is stored once`);
  if (input === null) return { messages: resumed, withoutSubscribers: 0, loss: publisher.loss, isComplete: true };
  const { readUnsentParts } = await import("./unsent_part.ts");
  state.trimInputs(topic);
  let isComplete = true;
  const warn = (sentence: string) => {
    isComplete = false;
    io.err(`baton: ${sentence}\n`);
  };
  const context = { state, topic, command, resume: values.resume === true, tell, warn, onSkipped };
  let result = { messages: resumed, withoutSubscribers: 0, loss: publisher.loss };
  await using files = new AsyncDisposableStack();
  const parts = readUnsentParts(input, context, files);
  let next = await rejectOnAbort(parts.next(0), until);
  while (next.done !== true) {
    const { value: part } = next;
    done.earlier = part.earlier;
    done.stored = 0;
    const count = await publisher.putAll(part.chunks, {
      msgId: values.msgId ?? null,
      input: part.notes,
      isStream: input.isStream,
      signal,
      until,
      onStored: (messages, bytes) => {
        done.stored += messages;
        onStored(messages, bytes);
      },
    });
    if (!publisher.hasReadAll) throw until.reason;
    // A topic never forgets a client that uses message IDs, so such a client does not send this report.
    if (count > 0 && values.msgId === undefined) await publisher.reportResolved();
    result = {
      messages: result.messages + count,
      withoutSubscribers: result.withoutSubscribers + publisher.withoutSubscribers,
      loss: publisher.loss ?? result.loss,
    };
    next = await rejectOnAbort(parts.next(count), until);
    // Each part has a session of its own, because a publisher counts from 1.
    if (next.done !== true) publisher = new Publisher(client.nextSession(), topic);
  }
  if (values.resume && result.messages === resumed && isComplete) tell("nothing was left to put");
  return { ...result, isComplete };
}

export function warnOfUnknownPutOutcomes(
  { values, io }: ClientPutRun["call"],
  { topic, count, command }: { readonly topic: string; readonly count: number; readonly command: string },
): void {
  if (count === 0 || values.quiet) return;
  const messages = countWithNoun(count, "earlier message");
  io.err(`baton: the outcome of ${messages} for "${topic}" is unknown; to send them again: ${command} --resume\n`);
}

/** How long to wait for requests in flight after a signal, in milliseconds; a second signal ends the wait. */
const lastRequestsMsMax = 5000;

/** Returns a signal that aborts when the put must end: at the second signal, or some time after the first one. */
function limitOfPut({ finish, now }: ClientPutRun["stop"], waits: CleanupScope): AbortSignal {
  const late = new AbortController();
  waits.add(onAbort(finish, (reason) => {
    waits.add(systemClock().startTimer(lastRequestsMsMax, () => late.abort(reason)));
  }));
  return AbortSignal.any([now, late.signal]);
}

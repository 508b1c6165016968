/** `put`: puts the input, and reports what is unknown at the end. */
import type { ClientState } from "../../src/pubsub/client/client_state.ts";
import {
  emptyDigest,
  FileCheckpoint,
  type InputCheckpoint,
  NoCheckpoint,
  OffsetCheckpoint,
} from "../../src/pubsub/client/input_checkpoints.ts";
import { Publisher } from "../../src/pubsub/client/publisher.ts";
import { countWithNoun } from "../../src/support/text.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import { progressForm, ProgressLine } from "../../src/terminal/progress.ts";
import type { ClientCall, ClientRun } from "./client_options.ts";
import { type Input, putInputOf, unsentFiles, unsentMessages } from "./put_input.ts";
import { shellQuoteIfNeeded } from "../../src/process/hold/shell_quote.ts";
import { processSignals } from "../../src/process/supervise/signal_source.ts";
import { listenForStops, StoppedBySignal } from "../../src/process/supervise/stop_signals.ts";
import { onAbort } from "../../src/support/abort.ts";
import { systemClock } from "../../src/support/clock.ts";

export async function runClientPut(run: ClientRun): Promise<ExitCode> {
  const { call, target: { id, topic, rest }, client: { state } } = run;
  const { values, io } = call;
  const input = putInputOf(call, rest);
  const [stream, whole] = [new NoCheckpoint(), new FileCheckpoint(state, topic)];
  try {
    await putInput(run, input, { stream, whole });
    return exitCodes.SUCCESS;
  } catch (thrown) {
    const left = state.countIntents(topic);
    if (left > 0 && !values.quiet) {
      io.err(
        `baton: the outcome of ${countWithNoun(left, "message")} is unknown; to send ${
          left === 1 ? "it" : "them"
        } again: ` +
          `baton pubsub client ${shellQuoteIfNeeded(id)} put ${shellQuoteIfNeeded(topic)} --resume\n`,
      );
    }
    const place = input?.kind === "sequence" ? state.inputPosition(topic, input.name)?.taken : whole.taken;
    if (stream.taken !== null && !values.quiet) {
      const were = stream.taken === 1 ? "was" : "were";
      io.err(`baton: ${countWithNoun(stream.taken, "message")} of stdin ${were} put; the rest was not\n`);
    } else if (place !== undefined && place > 0 && !isSingle(input) && !values.quiet) {
      const were = place === 1 ? "was" : "were";
      io.err(`baton: ${countWithNoun(place, "message")} of the input ${were} put; --resume continues after that\n`);
    }
    throw thrown;
  }
}

async function putInput(
  { call, target: { topic }, client, signal: until }: ClientRun,
  input: Input | null,
  unread: { readonly stream: NoCheckpoint; readonly whole: FileCheckpoint },
): Promise<void> {
  const { values, io } = call;
  const { state } = client;
  const publisher = new Publisher(client, topic);
  const isWanted = input !== null && !isSingle(input);
  const total = isWanted && progressForm(call) !== null ? input.totalBytes() : null;
  using progress = new ProgressLine(call, { noun: "message", verb: "stored", total, countsTotal: false, isWanted });
  using ending = new PutStop(until);
  const { signal } = ending;
  const inInput = (messages: number, bytes: number) => bytes + messages * (input?.separatorBytes ?? 0);
  const onStored = (messages: number, bytes: number) => progress.add(messages, inInput(messages, bytes));
  let resumed = 0;
  if (values.resume) resumed = await publisher.resume({ signal, until, onStored });
  else warnOfUnknownOutcomes(call, topic, state.countIntents(topic));
  if (resumed > 0 && !values.quiet) {
    io.err(`baton: put ${countWithNoun(resumed, "message")} again; each is stored once\n`);
  }
  if (input === null) return;
  state.trimInputs(topic);
  const onSkipped = (messages: number, bytes: number) => progress.addEarlierWork(inInput(messages, bytes));
  const { notes, chunks } = unsentPartOf(input, { ...unread, state, topic, resume: values.resume === true, onSkipped });
  const count = await publisher.putAll(chunks, {
    ...{ msgId: values.msgId ?? null, input: notes, isStream: input.isStream },
    ...{ signal, until, onStored },
  });
  if (!publisher.hasReadAll) throw until.reason;
  // A client that uses message IDs is never forgotten.
  if (count > 0 && values.msgId === undefined) await publisher.reportResolved();
  if (values.resume && count === 0 && !values.quiet) io.err("baton: nothing was left to put\n");
}

const isSingle = (input: Input | null): boolean => input?.kind === "files" && input.files.length === 1;

/** Returns the messages that have to be put, and the checkpoint that records them. */
function unsentPartOf(input: Input, { state, topic, stream, whole, resume, onSkipped }: {
  readonly state: ClientState;
  readonly topic: string;
  readonly stream: NoCheckpoint;
  readonly whole: FileCheckpoint;
  readonly resume: boolean;
  readonly onSkipped: (messages: number, bytes: number) => void;
}): { readonly notes: InputCheckpoint; readonly chunks: AsyncIterable<readonly Uint8Array[]> } {
  const taken = (name: string) => resume ? state.inputPosition(topic, name) : null;
  if (input.kind === "files") return { notes: whole, chunks: unsentFiles(input, whole, { taken, onSkipped }) };
  if (input.isStream) return { notes: stream, chunks: input.read() };
  const place = taken(input.name);
  const notes = new OffsetCheckpoint(state, topic, place ?? { name: input.name, taken: 0, digest: emptyDigest });
  return { notes, chunks: place === null ? input.read() : unsentMessages(input, place, onSkipped) };
}

function warnOfUnknownOutcomes({ values, io }: ClientCall, topic: string, count: number): void {
  if (count === 0 || values.quiet) return;
  io.err(
    `baton: the outcome of ${
      countWithNoun(count, "earlier message")
    } for "${topic}" is unknown; to send them again: put ${shellQuoteIfNeeded(topic)} --resume\n`,
  );
}

/** Milliseconds to wait for requests in flight after a signal; a second signal ends the wait. */
const lastRequestsMsMax = 5000;

/** Limits the time from the first signal on: until the second signal, or a timeout. */
export class PutStop implements Disposable {
  readonly #over = new AbortController();
  readonly #offs: (() => void)[] = [];

  constructor(until: AbortSignal) {
    const clock = systemClock();
    // If the signal has already arrived, the callback runs immediately.
    const offTime = onAbort(until, (reason) => {
      this.#offs.push(clock.startTimer(lastRequestsMsMax, () => this.#over.abort(reason)));
    });
    const offSignals = listenForStops(processSignals(), clock, {
      onFirstSignal: () => {}, // `until` aborts with it
      onLaterSignal: (name) => this.#over.abort(new StoppedBySignal(name)),
    });
    this.#offs.push(offTime, offSignals);
  }

  /** Aborts when nothing is awaited any longer. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  [Symbol.dispose](): void {
    for (const off of this.#offs) off();
  }
}

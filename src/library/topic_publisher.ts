/** Puts messages of a program into a topic, each exactly once, in the order of the calls. */
import { BatonError, errorMessage } from "../base/errors.ts";
import { checkPubsubName, messageBytesMax } from "../pubsub/client/client_limits.ts";
import { type MessageLossCertainty, messageLossSentence } from "../pubsub/client/message_loss.ts";
import { Publisher } from "../pubsub/client/publisher.ts";
import type { PubsubClientSession } from "../pubsub/client/pubsub_client_session.ts";
import { rejectOnAbort, throwIfAborted } from "../base/support/abort.ts";
import { OneTimeEvent } from "../base/support/event.ts";
import {
  checkArgument,
  checkedBytes,
  checkOptions,
  type OptionForm,
  type OptionForms,
  textForm,
} from "./check_arguments.ts";
import { pubsubCallForms, type PubsubCallOptions, type PubsubConnection } from "./pubsub_connection.ts";

export interface PutMessageOptions extends PubsubCallOptions {
  /**
   * The program's own ID of this message, 1 to 1,024 bytes. A program that was killed can use it to repeat a put. If
   * this client has used the ID for one of the topic's last 10,000 messages with an ID, the put stores nothing and
   * succeeds.
   */
  readonly messageId?: string;
}

/** How many puts `putAll` adds before it waits for the puts before them. This number is enough for full requests. */
const putsInBatch = 512;

const putForms: OptionForms<PutMessageOptions> = { ...pubsubCallForms, messageId: textForm };
const iterableForm: OptionForm = {
  expected: "an iterable of messages",
  fits: (value) =>
    typeof value === "object" && value !== null && (Symbol.iterator in value || Symbol.asyncIterator in value),
};

export class TopicPublisher {
  readonly topic: string;
  readonly #connection: PubsubConnection;
  #run: PutRun | null = null;
  /**
   * Settles when earlier runs and calls of `resume` have ended, because only one of them can use the session at a time.
   */
  #earlier: Promise<unknown> = Promise.resolve();
  #isClosed = false;
  #loss: MessageLossCertainty | null = null;

  /** Use `PubsubClient.publisher` in place of this constructor. */
  constructor(connection: PubsubConnection, topic: string) {
    this.topic = topic;
    this.#connection = connection;
  }

  /**
   * Puts a message. Resolves when it is on the server's disk; every current subscriber gets it once. Text is stored as
   * UTF-8. Do not change the bytes before the promise settles. Puts that do not wait for each other are sent together,
   * in their order.
   *
   * Rejects with OUTCOME_UNKNOWN if the message may have been stored. Do not put it again: the client's state keeps it,
   * `resume` or the next put sends it again, and the server recognizes it. Any other error means that the message is
   * not stored: UNREACHABLE (no server responded within `wait`), LOCK_BUSY (another process uses the client ID),
   * STORE_FULL, REFUSED, BAD_DATA (more than 64 MiB, or a message ID of another message), FENCED, or IO. Messages that
   * wait behind it are then not stored either. With the signal's reason, the message may be stored or not.
   */
  async put(message: string | Uint8Array, options: PutMessageOptions = {}): Promise<void> {
    checkOptions("put", options, putForms);
    await this.#putInto(() => this.#currentRun(), message, options);
  }

  #putInto(
    runOf: () => PutRun,
    message: string | Uint8Array,
    { messageId, wait, signal }: PutMessageOptions,
  ): Promise<void> {
    const body = checkedBytes("The message", message);
    if (body.byteLength > messageBytesMax) {
      const size = `it has ${body.byteLength} bytes; the limit is ${messageBytesMax}`;
      throw new BatonError("BAD_DATA", `Cannot put the message into topic "${this.topic}": ${size}`);
    }
    if (messageId !== undefined) checkPubsubName("messageId", messageId);
    throwIfAborted(signal);
    throwIfAborted(this.#connection.closed);
    if (this.#isClosed) throw new BatonError("USAGE", `The publisher of topic "${this.topic}" was closed`);
    const { endMs } = this.#connection.limitsOf({ wait });
    const stored = runOf().add({ body, messageId: messageId ?? null, endMs });
    return rejectOnAbort(stored, signal);
  }

  /**
   * Puts all messages in order, up to 1,024 at the same time. Resolves with the number of messages. The first failure
   * ends the call, which rejects as `put` does; no message after the failed one is stored.
   */
  async putAll(
    messages: Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>,
    options: PubsubCallOptions = {},
  ): Promise<number> {
    checkOptions("putAll", options, pubsubCallForms);
    checkArgument("putAll", "messages", messages, iterableForm);
    const failures: unknown[] = [];
    let stored = 0;
    let earlier: Promise<unknown> = Promise.resolve();
    let batch: Promise<void>[] = [];
    let run: PutRun | null = null;
    try {
      for await (const message of messages) {
        if (batch.length >= putsInBatch) {
          await earlier;
          earlier = Promise.all(batch);
          batch = [];
        }
        if (run?.isOpen === false) {
          // A message after a failed message must not be stored in the next run.
          await Promise.all([earlier, ...batch]);
          if (failures.length > 0) break;
        }
        const current: PutRun = run?.isOpen ? run : this.#currentRun();
        run = current;
        const putting = this.#putInto(() => current, message, options);
        batch.push(putting.then(() => void stored++, (thrown) => void failures.push(thrown)));
      }
    } finally {
      await Promise.all([earlier, ...batch]);
    }
    if (failures.length > 0) throw failures[0];
    return stored;
  }

  /**
   * Sends the puts with an unknown outcome again, including those of an earlier process with this client ID. Resolves
   * with their number when each is stored once. Rejects as `put` does; OUTCOME_UNKNOWN means that the outcomes are
   * still unknown.
   */
  async resume(options: PubsubCallOptions = {}): Promise<number> {
    const earlier = this.#endRun();
    const resuming = this.#connection.call(this.topic, options, async (session, { endMs = 0, signal }) => {
      await earlier;
      const publisher = new Publisher(session, this.topic);
      const resumed = await publisher.resume({ signal, endMs });
      this.#noteLoss(publisher);
      return resumed;
    });
    this.#earlier = resuming.catch(() => {});
    return await resuming;
  }

  /** Returns the number of messages with an unknown outcome. */
  async unknownPuts(options: PubsubCallOptions = {}): Promise<number> {
    return (await this.#connection.state(this.topic, this.#connection.limitsOf(options))).countIntents(this.topic);
  }

  /**
   * Says if a fail-over of the topic's database has lost earlier messages that the server had confirmed: `certain`,
   * `possible`, or null if no loss is known. Servers report a loss with the puts of this object. `onProblem` of the
   * client receives a sentence, too.
   */
  get loss(): "certain" | "possible" | null {
    return this.#loss;
  }

  /** Waits for the puts in flight, at most until their time limits. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#endRun();
  }

  #currentRun(): PutRun {
    if (this.#run?.isOpen) return this.#run;
    if (this.#run !== null) this.#earlier = this.#run.ended;
    const run = new PutRun(this.#connection, this.topic, {
      earlier: this.#earlier,
      onStored: (publisher) => this.#noteLoss(publisher),
    });
    run.ended.then(() => {
      if (this.#run === run) this.#run = null;
    });
    return this.#run = run;
  }

  #noteLoss({ loss }: Publisher): void {
    if (loss === null || loss === this.#loss) return;
    this.#loss = loss;
    this.#connection.report(messageLossSentence(this.topic, loss));
  }

  #endRun(): Promise<unknown> {
    const run = this.#run;
    this.#run = null;
    return this.#earlier = run === null ? this.#earlier : run.end();
  }
}

interface NewPut {
  readonly body: Uint8Array;
  readonly messageId: string | null;
  readonly endMs: number;
}

interface PendingPut extends NewPut {
  readonly stored: () => void;
  readonly failed: (error: unknown) => void;
}

/**
 * Puts several messages in one session. The run ends with the first failure, and then all puts that are not stored
 * fail.
 */
class PutRun {
  readonly #connection: PubsubConnection;
  readonly #topic: string;
  readonly #onStored: (publisher: Publisher) => void;
  #waiting: PendingPut[] = [];
  /** The puts that the program has requested and that are not yet confirmed, by counter. */
  readonly #given = new Map<number, PendingPut>();
  #nextCounter = 1;
  #work = new OneTimeEvent();
  #isEnding = false;
  #hasFailed = false;
  #hasReported = false;
  readonly ended: Promise<void>;

  /** Begins the run when `earlier` has settled. The first put is added before that. */
  constructor(connection: PubsubConnection, topic: string, { earlier, onStored }: {
    readonly earlier: Promise<unknown>;
    readonly onStored: (publisher: Publisher) => void;
  }) {
    this.#connection = connection;
    this.#topic = topic;
    this.#onStored = onStored;
    this.ended = earlier.then(() => this.#run());
  }

  get isOpen(): boolean {
    return !this.#hasFailed && !this.#isEnding;
  }

  add(put: NewPut): Promise<void> {
    return new Promise((stored, failed) => {
      this.#waiting.push({ ...put, stored, failed });
      this.#work.set();
    });
  }

  end(): Promise<void> {
    this.#isEnding = true;
    this.#work.set();
    return this.ended;
  }

  async #run(): Promise<void> {
    const { closed: signal } = this.#connection;
    const topic = this.#topic;
    const endMs = this.#waiting[0]?.endMs ?? 0;
    let session: PubsubClientSession | null = null;
    try {
      session = await this.#connection.session(topic, { endMs, signal });
      const publisher = new Publisher(session, topic);
      if (session.state.countIntents(topic) > 0) await publisher.resume({ signal, endMs });
      await publisher.putAll(this.#chunks(), {
        signal,
        isStream: true,
        msgIdOf: (counter) => this.#given.get(counter)?.messageId ?? null,
        endMsOf: (first, count) => this.#endMsOf(first, count),
        onStored: (count, _, first) => {
          this.#onStored(publisher);
          this.#confirm(first, count);
          if (publisher.withoutSubscribers > 0) this.#reportNoSubscriber();
        },
      });
      await publisher.reportResolved();
    } catch (error) {
      this.#hasFailed = true;
      this.#failAll(error, session);
    }
    // The session is replaced, because its counters are used and cannot be used again.
    if (session !== null) this.#connection.replaceSession(topic, session);
  }

  async *#chunks(): AsyncGenerator<readonly Uint8Array[], void, void> {
    for (;;) {
      while (this.#waiting.length === 0) {
        if (this.#isEnding) return;
        await this.#work.wait();
        this.#work = new OneTimeEvent();
      }
      yield this.#takeChunk();
    }
  }

  /** Takes the puts that are sent together. A put with a message ID ends the group, because it is sent alone. */
  #takeChunk(): Uint8Array[] {
    const index = this.#waiting.findIndex(({ messageId }) => messageId !== null);
    const taken = this.#waiting.splice(0, index < 0 ? this.#waiting.length : Math.max(1, index));
    for (const put of taken) this.#given.set(this.#nextCounter++, put);
    return taken.map(({ body }) => body);
  }

  /**
   * Returns the earliest time limit of these messages, because one request contains all of them and has only one
   * outcome.
   */
  #endMsOf(first: number, count: number): number {
    let endMs = Infinity;
    for (let counter = first; counter < first + count; counter++) {
      endMs = Math.min(endMs, (this.#given.get(counter) ?? this.#waiting[0])?.endMs ?? Infinity);
    }
    return Number.isFinite(endMs) ? endMs : this.#connection.clock.now() + this.#connection.waitMs;
  }

  #reportNoSubscriber(): void {
    if (this.#hasReported) return;
    this.#hasReported = true;
    this.#connection.report(`topic "${this.#topic}" has no subscriber: messages are accepted, and no client gets them`);
  }

  #confirm(first: number, count: number): void {
    for (let counter = first; counter < first + count; counter++) {
      this.#given.get(counter)?.stored();
      this.#given.delete(counter);
    }
  }

  #failAll(error: unknown, session: PubsubClientSession | null): void {
    const mayBeStored = session === null ? () => false : unknownCounters(session, this.#topic);
    for (const [counter, { failed }] of this.#given) {
      failed(mayBeStored(counter) ? this.#unknown(error) : this.#notDone(error));
    }
    for (const { failed } of this.#waiting.splice(0)) failed(this.#notDone(error));
    this.#given.clear();
  }

  #unknown(error: unknown): unknown {
    if (error instanceof BatonError && error.code === "OUTCOME_UNKNOWN") return error;
    const what = `The outcome is unknown: put a message into topic "${this.#topic}": ${errorMessage(error)}`;
    return new BatonError("OUTCOME_UNKNOWN", what, { cause: error });
  }

  #notDone(error: unknown): unknown {
    if (!(error instanceof BatonError)) return error;
    const cannot = `Cannot put the message into topic "${this.#topic}"; definitely not done`;
    if (error.code !== "OUTCOME_UNKNOWN") {
      return error.message.startsWith("Cannot put ")
        ? error
        : new BatonError(error.code, `${cannot}: ${error.message}`, { cause: error });
    }
    const why = `the outcome of an earlier message is unknown: ${error.message}`;
    return new BatonError("UNREACHABLE", `${cannot}: ${why}`, { cause: error });
  }
}

/**
 * Returns a function that returns true if the put with this counter has an unknown outcome. If the state cannot be
 * read, all puts have an unknown outcome.
 */
function unknownCounters({ state, token }: PubsubClientSession, topic: string): (counter: number) => boolean {
  try {
    const intents = state.putIntents(topic).filter(({ session }) => session.number === token.number);
    return (counter) =>
      intents.some((intent) => counter >= intent.counter && counter < intent.counter + intent.bodies.length);
  } catch {
    return () => true;
  }
}

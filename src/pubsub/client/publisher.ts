/**
 * Puts messages into one topic, each exactly once. The publisher stores an intent before it sends a request, and
 * deletes the intent when it knows the outcome. Several requests can be in flight. Servers store them in order, because
 * each request names the counter that must be stored before it.
 */
import { BatonError, errorMessage } from "../../base/errors.ts";
import { anyAbortSignal, rejectOnAbort, throwIfAborted } from "../../base/support/abort.ts";
import { countWithNoun } from "../../base/support/text.ts";
import { type MessageLossCertainty, parseMessageLoss } from "./message_loss.ts";
import type { PubsubClientSession } from "./pubsub_client_session.ts";
import type { UnresolvedPutRequest } from "./client_state.ts";
import { emptyInputDigest, extendInputDigest, type PutInputCheckpoint } from "./input_checkpoints.ts";
import { type PubsubRequestOptions, type PubsubRequestOutcome, requestOutcomeError } from "./requester.ts";
import { totalByteLength } from "../../base/wire/bytes.ts";
import { bodyBytesMax } from "../wire/message_limits.ts";
import type { PubsubHeaders } from "../wire/pubsub_messages.ts";

/** The most messages in flight. Another request is sent only while fewer bytes than `windowBytes` are in flight. */
const windowMessages = 256;
const windowBytes = 16 << 20;

export interface PublisherPutOptions {
  readonly msgId?: string | null;
  /**
   * Returns the `msgId` of the message with this counter. If a message has a `msgId`, its chunk of the input contains
   * no other message.
   */
  readonly msgIdOf?: (counter: number) => string | null;
  readonly input?: PutInputCheckpoint | null;
  /** Ends the call immediately; the outcome of requests in flight is then unknown. */
  readonly signal?: AbortSignal | undefined;
  /** Ends the reading of the input. Requests that were already sent are still awaited. */
  readonly until?: AbortSignal | undefined;
  /**
   * True if the input cannot be read again. Messages that were read from it are then put even after `until` has
   * aborted.
   */
  readonly isStream?: boolean;
  /** Called when messages were stored, with their number, their bytes, and the counter of the first one. */
  readonly onStored?: (messages: number, bytes: number, first: number) => void;
  /** Returns the time on the clock until which a request is tried. `first` is the counter of its first message. */
  readonly endMsOf?: (first: number, count: number) => number;
}

interface InFlightBatch {
  readonly first: number;
  /** The digest of all input before this batch. */
  readonly digest: string;
  readonly count: number;
  readonly bytes: number;
  readonly abort: AbortController;
  /** Returns true if the request was sent. A server may then have executed it. */
  readonly wasSent: () => boolean;
  readonly ended: Promise<void>;
}

/** A request that was definitely not executed. */
interface RefusedPut {
  readonly counter: number;
  /** The digest of all input before this message. */
  readonly digest: string;
  readonly error: unknown;
  /** True if the network may still deliver a copy of the request. A server may then store the copy. */
  readonly mayStillBeStored: boolean;
  /** True if a server had no room for the message. If a copy of the request arrives later, the server may have room. */
  readonly wasFull: boolean;
}

interface CheckpointUpdate {
  readonly checkpoint: PutInputCheckpoint;
  readonly counter: number;
  readonly digest: string;
}

export class Publisher {
  readonly #client: PubsubClientSession;
  readonly #topic: string;
  #counter = 1;
  /** The digest of all messages of the input that were taken. */
  #digest = emptyInputDigest;
  readonly #inFlight = new Set<InFlightBatch>();
  #messages = 0;
  #bytes = 0;
  /** Ranges of counters whose outcome is known, and whose intents are still stored. */
  #settledCounters: { readonly first: number; readonly last: number }[] = [];
  #refusedPut: RefusedPut | null = null;
  /** Batches whose outcome is unknown, each with its error. The error is null if the wait was aborted. */
  #unknownOutcomes: { readonly flight: InFlightBatch; readonly error: BatonError | null }[] = [];
  #thrown: { readonly error: unknown } | null = null;
  #waitsForInput = false;
  #hasReadAll = false;
  #withoutSubscribers = 0;
  #loss: MessageLossCertainty | null = null;
  /** Aborts when no further request may be sent. */
  readonly #stop = new AbortController();

  constructor(client: PubsubClientSession, topic: string) {
    this.#client = client;
    this.#topic = topic;
  }

  /**
   * Tells the topic that the outcomes of all puts are known. The topic can then forget this publisher before other
   * publishers. Called after `putAll`.
   */
  async reportResolved(): Promise<void> {
    await this.#client.reportResolved(this.#topic, this.#counter);
  }

  /**
   * Tells whether a fail-over of the topic's database has lost messages that were answered with OK, certainly or
   * possibly; null if not.
   */
  get loss(): MessageLossCertainty | null {
    return this.#loss;
  }

  /** The number of messages that the topic accepted but did not store, because no client was subscribed. */
  get withoutSubscribers(): number {
    return this.#withoutSubscribers;
  }

  get hasReadAll(): boolean {
    return this.#hasReadAll;
  }

  /**
   * Puts all messages in order, and resolves with their number when all are stored. Rejects with OUTCOME_UNKNOWN (the
   * intents stay for `resume`), the error of a refused message, or the signal's reason. May be called only once for
   * each publisher.
   */
  async putAll(chunks: AsyncIterable<readonly Uint8Array[]>, options: PublisherPutOptions = {}): Promise<number> {
    const { signal, until, isStream = false, input: checkpoint = null, endMsOf } = options;
    const ends = anyAbortSignal(signal, isStream ? undefined : until);
    this.#digest = checkpoint?.digest ?? emptyInputDigest;
    await this.#client.register(this.#topic, { signal, endMs: endMsOf?.(1, 1) });
    let inputError: unknown;
    try {
      const input = chunks[Symbol.asyncIterator]();
      const stopped = anyAbortSignal(this.#stop.signal, signal, until);
      while (!this.#hasEnded && !signal?.aborted && !until?.aborted) {
        this.#waitsForInput = true;
        this.#settleIdle();
        const { done, value } = await rejectOnAbort(input.next(), stopped);
        this.#waitsForInput = false;
        this.#hasReadAll = done === true;
        if (done === true) break;
        await this.#sendAll(value, options, ends);
      }
    } catch (thrown) {
      if (!this.#hasEnded && !signal?.aborted && !until?.aborted) inputError = thrown ?? new Error("the input failed");
    }
    this.#waitsForInput = false;
    // Aborts batches that were not sent. Their messages are still in the input.
    if (until?.aborted && !isStream) {
      for (const flight of this.#inFlight) if (!flight.wasSent()) flight.abort.abort(until.reason);
    }
    await Promise.all([...this.#inFlight].map(({ ended }) => ended));
    if (this.#refusedPut?.mayStillBeStored) await this.#endSession(this.#refusedPut, signal);
    this.#storeProgress(
      [],
      checkpoint && { checkpoint, ...this.#refusedPut ?? { counter: this.#counter, digest: this.#digest } },
    );
    // Reports an unknown outcome first: the user has to resume, and this also puts the messages that were refused
    // later.
    const doubt = this.#unknownOutcomes.find(({ error }) => error !== null)?.error;
    const error = this.#thrown?.error ?? doubt ?? this.#refusedPut?.error ?? inputError;
    if (error !== undefined && error !== null) throw error;
    if (signal?.aborted) throw signal.reason;
    return this.#counter - 1;
  }

  /** Sends all puts with an unknown outcome again, and resolves with the number of their messages. */
  async resume(
    { signal, until, endMs, onStored = () => {} }: Pick<PublisherPutOptions, "signal" | "until" | "onStored"> & {
      readonly endMs?: number;
    } = {},
  ): Promise<number> {
    const { state } = this.#client;
    let count = 0;
    for (const run of joinIntents(state.putIntents(this.#topic))) {
      throwIfAborted(until);
      const outcome = await this.#resend(run, { signal, endMs });
      const isOk = outcome.kind === "response" && outcome.response.status === "OK";
      const { counter, bodies: { length } } = run;
      if (isOk || isSettled(outcome)) {
        state.runTransaction(() => state.settleIntents(run, { first: counter, last: counter + length - 1 }));
      }
      if (isOk) this.#noteOk(outcome.response.headers, length);
      if (!isOk) {
        throw requestOutcomeError(`put ${countWithNoun(length, "message")} into topic "${this.#topic}" again`, outcome);
      }
      count += length;
      onStored(length, totalByteLength(run.bodies), counter);
    }
    return count;
  }

  /** Records what the response to a put of `count` messages says in addition to its IDs. */
  #noteOk(headers: PubsubHeaders | undefined, count: number): void {
    this.#loss = parseMessageLoss(headers?.loss) ?? this.#loss;
    if (headers?.subscribers === 0) this.#withoutSubscribers += count;
  }

  /** Records known outcomes while nothing is in flight. After a kill, fewer puts then have to be resumed. */
  #settleIdle(): void {
    if (!this.#waitsForInput || this.#inFlight.size > 0) return;
    try {
      this.#storeProgress([], null, { durable: false });
    } catch (error) {
      this.#thrown ??= { error };
      this.#stop.abort();
    }
  }

  get #hasEnded(): boolean {
    return this.#refusedPut !== null || this.#unknownOutcomes.length > 0 || this.#thrown !== null;
  }

  async #resend(
    { counter, session, registration, msgId, bodies }: UnresolvedPutRequest,
    limits: Pick<PubsubRequestOptions, "signal" | "endMs">,
  ): Promise<PubsubRequestOutcome> {
    const own = this.#client.token;
    const headers = {
      firstUnacked: counter,
      ...(session.number === own.number && session.key === own.key ? {} : { fromSession: session }),
      ...(msgId === null ? {} : { msgId }),
    };
    const put = { name: "PUT", topic: this.#topic, counter, headers, ...bodyOrBatch(bodies) } as const;
    return await this.#client.request(put, { ...limits, registration });
  }

  /**
   * Sends as many messages as the window (the limit of messages in flight) allows. Stores the intents of requests that
   * are sent together in one transaction.
   */
  async #sendAll(items: readonly Uint8Array[], options: PublisherPutOptions, ends: AbortSignal): Promise<void> {
    let group: Uint8Array[][] = [];
    let messages = 0;
    let bytes = 0;
    const sendGroup = () => {
      const batches = group;
      group = [];
      messages = 0;
      bytes = 0;
      if (batches.length > 0) this.#send(batches, options);
    };
    try {
      for (const batch of splitIntoBatches(items)) {
        if (group.length > 0 && this.#isFull(messages + batch.length, bytes)) sendGroup();
        if (group.length === 0 && !(await this.#waitForRoom(batch.length, ends))) return;
        group.push(batch);
        messages += batch.length;
        bytes += totalByteLength(batch);
      }
    } finally {
      sendGroup(); // also before a message that is too long
    }
  }

  /** Waits for room in the window. Returns false if no further request may be sent. */
  async #waitForRoom(count: number, ends: AbortSignal): Promise<boolean> {
    while (!this.#hasEnded && !ends.aborted && this.#isFull(count, 0)) {
      await Promise.race([...this.#inFlight].map(({ ended }) => ended));
    }
    return !this.#hasEnded && !ends.aborted;
  }

  #isFull(messages: number, bytes: number): boolean {
    return this.#messages + messages > windowMessages || this.#bytes + bytes >= windowBytes;
  }

  /** Stores the intents in one transaction, and then sends the requests. If the transaction fails, sends no request. */
  #send(batches: readonly (readonly Uint8Array[])[], options: PublisherPutOptions): void {
    const { msgId = null, msgIdOf, input = null } = options;
    const session = this.#client.token;
    const registration = this.#client.state.knownRegistration(this.#topic);
    let counter = this.#counter;
    let digest = this.#digest;
    const requests = batches.map((bodies) => {
      const id = msgIdOf === undefined ? msgId : msgIdOf(counter);
      const intents: UnresolvedPutRequest = { topic: this.#topic, session, registration, counter, msgId: id, bodies };
      const before = digest;
      counter += bodies.length;
      if (input !== null && input.digest !== null) {
        for (const body of bodies) digest = extendInputDigest(digest, body);
      }
      return { intents, before };
    });
    this.#storeProgress(requests.map(({ intents }) => intents), input && { checkpoint: input, counter, digest });
    this.#counter = counter;
    this.#digest = digest;
    for (const { intents, before } of requests) this.#request(intents, before, options);
  }

  /** Sends one request. `digest` is the digest of all input before the messages of this request. */
  #request(
    { counter: first, msgId, bodies }: UnresolvedPutRequest,
    digest: string,
    options: PublisherPutOptions,
  ): void {
    // The outcome of every message below `firstUnacked` is also recorded on disk, so the server may forget these
    // messages.
    const firstUnacked = Math.min(first, ...[...this.#inFlight].map((flight) => flight.first));
    const bytes = totalByteLength(bodies);
    const abort = new AbortController();
    const signal = anyAbortSignal(abort.signal, options.signal);
    const headers = {
      firstUnacked,
      ...(first > firstUnacked ? { after: first - 1 } : {}),
      ...(msgId === null ? {} : { msgId }),
    };
    let wasSent = false;
    const asked = this.#client.request(
      { name: "PUT", topic: this.#topic, counter: first, headers, ...bodyOrBatch(bodies) },
      {
        signal,
        endMs: options.endMsOf?.(first, bodies.length),
        onSent: () => wasSent = true,
      },
    );
    const flight: InFlightBatch = {
      digest,
      first,
      count: bodies.length,
      bytes,
      abort,
      wasSent: () => wasSent,
      ended: this.#onOutcome(asked, () => flight, options),
    };
    this.#inFlight.add(flight);
    this.#messages += bodies.length;
    this.#bytes += bytes;
  }

  async #onOutcome(
    asked: Promise<PubsubRequestOutcome>,
    flightOf: () => InFlightBatch,
    { onStored, signal }: PublisherPutOptions,
  ): Promise<void> {
    let outcome: PubsubRequestOutcome | null = null;
    let why: unknown;
    try {
      outcome = await asked;
    } catch (thrown) {
      why = thrown;
      if (!signal?.aborted && this.#refusedPut === null) this.#thrown ??= { error: thrown };
    }
    const flight = flightOf();
    this.#inFlight.delete(flight);
    this.#messages -= flight.count;
    this.#bytes -= flight.bytes;
    // A batch after a refused message can never be stored, because it requires that this message was stored before it.
    const isBehind = this.#refusedPut !== null && flight.first > this.#refusedPut.counter;
    if (outcome === null) {
      if (isBehind) this.#settle(flight);
      else if (flight.wasSent()) this.#unknownOutcomes.push({ flight, error: null });
      else this.#recordFailure(flight, why); // its messages are still in the input
    } else if (outcome.kind === "response" && outcome.response.status === "OK") {
      this.#settle(flight);
      this.#noteOk(outcome.response.headers, flight.count);
      onStored?.(flight.count, flight.bytes, flight.first);
    } else if (outcome.kind === "unknown" || isForgotten(outcome)) {
      if (isBehind) this.#settle(flight);
      else this.#unknownOutcomes.push({ flight, error: unknownOutcomeError(this.#describeBatch(flight), outcome) });
    } else {
      // A client that was taken over leaves the topic to the newer session.
      const status = outcome.response?.status;
      const copies = { mayComeAgain: status !== "FENCED", wasFull: status === "FULL" };
      this.#recordFailure(flight, requestOutcomeError(this.#describeBatch(flight), outcome), copies);
    }
    if (this.#hasEnded) this.#stop.abort();
    else this.#settleIdle();
  }

  /** Records that this batch, and everything after it, was certainly not stored. */
  #recordFailure(flight: InFlightBatch, error: unknown, { mayComeAgain = false, wasFull = false } = {}): void {
    const { first, digest } = flight;
    this.#settle(flight);
    if (this.#refusedPut !== null && first > this.#refusedPut.counter) return;
    this.#refusedPut = { counter: first, digest, error, mayStillBeStored: mayComeAgain && flight.wasSent(), wasFull };
    for (const other of this.#inFlight) if (other.first > first) other.abort.abort(error);
    for (const doubt of this.#unknownOutcomes) if (doubt.flight.first > first) this.#settle(doubt.flight);
    this.#unknownOutcomes = this.#unknownOutcomes.filter((doubt) => doubt.flight.first < first);
  }

  /**
   * Ends the session before a refusal is recorded and reported. Otherwise a server could store a copy of the refused
   * request that the network delivers later. In three cases the outcome stays unknown until `resume`: the message was
   * stored in the meantime; the wait was aborted; or a server had no room for the message, and no server confirms the
   * end. If the end is not confirmed after a refusal for another reason, the first request of the next session ends
   * this session.
   */
  async #endSession({ counter, error, wasFull }: RefusedPut, signal: AbortSignal | undefined): Promise<void> {
    let end: { readonly isStored: boolean } | null = null;
    try {
      end = await this.#client.endSession(this.#topic, counter, { signal });
    } catch {
      // The error of the refusal is reported whether or not this request succeeds.
    }
    if (end?.isStored === false) return;
    const isAborted = signal?.aborted === true;
    if (end === null && !isAborted && !wasFull) return;
    this.#refusedPut = null;
    this.#settledCounters = this.#settledCounters.filter(({ first }) => first < counter);
    if (isAborted && end === null) return;
    const sentence = end === null
      ? `${errorMessage(error)}; no server confirmed that it will not store a copy of the request later`
      : `message ${counter} was refused, but was stored when the network delivered it again`;
    this.#thrown ??= { error: new BatonError("OUTCOME_UNKNOWN", `The outcome is unknown: ${sentence}`) };
  }

  #describeBatch({ first, count }: InFlightBatch): string {
    const which = count === 1 ? `message ${first}` : `messages ${first} to ${first + count - 1}`;
    return `put ${this.#counter === 2 ? "the message" : which} into topic "${this.#topic}"`;
  }

  #settle({ first, count }: InFlightBatch): void {
    this.#settledCounters.push({ first, last: first + count - 1 });
  }

  /** Stores intents, settled counters, and the checkpoint `place`, which covers the messages before its counter. */
  #storeProgress(
    intents: readonly UnresolvedPutRequest[],
    place: CheckpointUpdate | null,
    options?: { readonly durable?: boolean },
  ): void {
    const { state } = this.#client;
    if (intents.length === 0 && this.#settledCounters.length === 0 && place === null) return;
    const session = this.#client.token;
    state.runTransaction(() => {
      for (const range of this.#settledCounters) state.settleIntents({ topic: this.#topic, session }, range);
      for (const request of intents) state.addIntents(request);
      if (place !== null) place.checkpoint.record(place.counter - 1, place.digest);
    }, options);
    this.#settledCounters = [];
  }
}

function unknownOutcomeError(what: string, outcome: PubsubRequestOutcome): BatonError {
  if (outcome.kind === "unknown") return requestOutcomeError(what, outcome);
  return requestOutcomeError(what, {
    kind: "unknown",
    why: "the topic has forgotten this client meanwhile",
    response: outcome.response,
  });
}

/** Returns true if the topic forgot this client during its puts. It is then unknown what was stored before. */
function isForgotten(outcome: PubsubRequestOutcome): boolean {
  return outcome.response?.status === "UNREGISTERED";
}

/** Returns true if another try cannot reveal more about the outcome. */
function isSettled(outcome: PubsubRequestOutcome): boolean {
  return outcome.kind === "response" &&
    ["STALE_OP", "COUNTER_REUSE", "BAD_REQUEST", "UNREGISTERED"].includes(outcome.response.status);
}

/** The most messages and bytes of one request. A request with a single message may be longer. */
const batchMessages = 64;
const batchBytes = 1 << 20;

function bodyOrBatch(bodies: readonly Uint8Array[]): { body: Uint8Array } | { batch: readonly Uint8Array[] } {
  const [first] = bodies;
  return bodies.length === 1 && first !== undefined ? { body: first } : { batch: bodies };
}

/** Splits messages into batches for requests. Throws BAD_DATA for a message over the limit. */
function* splitIntoBatches(items: readonly Uint8Array[]): Generator<Uint8Array[], void, void> {
  let batch: Uint8Array[] = [];
  let bytes = 0;
  for (const item of items) {
    if (item.byteLength > bodyBytesMax) {
      throw new BatonError("BAD_DATA", `A message of ${item.byteLength} bytes is over the limit of ${bodyBytesMax}`);
    }
    if (batch.length > 0 && (batch.length >= batchMessages || bytes + item.byteLength > batchBytes)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(item);
    bytes += item.byteLength;
  }
  if (batch.length > 0) yield batch;
}

/** Joins intents that fit into one request: they must have the same session, consecutive counters and no message ID. */
function joinIntents(intents: readonly UnresolvedPutRequest[]): UnresolvedPutRequest[] {
  const runs: UnresolvedPutRequest[] = [];
  for (const next of intents) {
    const run = runs.at(-1);
    const follows = run !== undefined && run.counter + run.bodies.length === next.counter &&
      run.session.number === next.session.number && run.session.key === next.session.key &&
      run.registration === next.registration &&
      run.msgId === null && next.msgId === null && run.bodies.length + next.bodies.length <= batchMessages &&
      totalByteLength(run.bodies) + totalByteLength(next.bodies) <= batchBytes;
    if (follows) runs[runs.length - 1] = { ...run, bodies: [...run.bodies, ...next.bodies] };
    else runs.push(next);
  }
  return runs;
}

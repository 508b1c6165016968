/**
 * Puts messages, each once: an intent is stored before anything is sent, and goes when the outcome is known. A window of
 * requests is under way, and their order is kept: each says which counter has to be there before it.
 */
import { BatonError } from "../../../errors.ts";
import { abortable, throwIfAborted } from "../../../support/abort.ts";
import { bodyBytesMax } from "../../../wire/pubsub/limits.ts";
import type { ClientSession } from "./client_session.ts";
import type { InputPlace, PutIntent } from "./client_state.ts";
import { chained, emptyChain } from "./item_chain.ts";
import { outcomeError } from "./outcome_error.ts";
import type { Outcome } from "./requester.ts";

/** Messages under way at most; one more request is made as long as fewer bytes are. */
const windowMessages = 256;
const windowBytes = 16 << 20;
/** Messages of one request, and their bytes; one message may have more. */
const batchMessages = 64;
const batchBytes = 1 << 20;

export interface PutOptions {
  readonly msgId?: string | null;
  /** What the messages come from, and what was taken of it before: the place in it is kept. */
  readonly input?: InputPlace | null;
  /** Nothing more is awaited: what is under way is unknown. */
  readonly signal?: AbortSignal | undefined;
  /** Nothing more is read; what was sent is waited for. */
  readonly until?: AbortSignal | undefined;
  /** What was read cannot be had again: it is put also after `until`. */
  readonly isStream?: boolean;
  /** Told of messages that are stored, and of their bytes. */
  readonly onStored?: (messages: number, bytes: number) => void;
}

interface Flight {
  readonly first: number;
  /** Of what was taken before it. */
  readonly chain: string;
  readonly count: number;
  readonly bytes: number;
  readonly abort: AbortController;
  /** Whether any of it may have arrived. */
  readonly wasSent: () => boolean;
  readonly ended: Promise<void>;
}

export class Publisher {
  readonly #client: ClientSession;
  readonly #topic: string;
  /** The next message's. */
  #counter = 1;
  /** Of all that was taken. */
  #chain = emptyChain;
  readonly #flights = new Set<Flight>();
  #messages = 0;
  #bytes = 0;
  /** Counters whose outcome is known, and whose intents are still stored. */
  #settled: { readonly first: number; readonly last: number }[] = [];
  #failed: { readonly counter: number; readonly chain: string; readonly error: unknown } | null = null;
  #doubt: BatonError | null = null;
  #thrown: { readonly error: unknown } | null = null;
  #waitsForInput = false;
  #hasReadAll = false;
  /** Aborts when nothing more is to be sent. */
  readonly #stop = new AbortController();

  constructor(client: ClientSession, topic: string) {
    this.#client = client;
    this.#topic = topic;
  }

  /** Whether `putAll` came to the end of its input. */
  get hasReadAll(): boolean {
    return this.#hasReadAll;
  }

  /**
   * Puts all, in their order; resolves when all are stored. Rejects with OUTCOME_UNKNOWN, whose intents are kept for `resume`,
   * with what a message was refused for, or with the signal's reason. One publisher, one call.
   */
  async putAll(chunks: AsyncIterable<readonly Uint8Array[]>, options: PutOptions = {}): Promise<number> {
    const { signal, until, isStream = false, input: place = null } = options;
    const ends = AbortSignal.any([signal, isStream ? undefined : until].filter((end) => end !== undefined));
    this.#chain = place?.chain ?? emptyChain;
    let inputError: unknown;
    try {
      const input = chunks[Symbol.asyncIterator]();
      const stopped = this.#stopped(signal, until);
      while (!this.#hasEnded && !signal?.aborted && !until?.aborted) {
        this.#waitsForInput = true;
        this.#settleIdle();
        const { done, value } = await abortable(input.next(), stopped);
        this.#waitsForInput = false;
        this.#hasReadAll = done === true;
        if (done === true) break;
        for (const batch of batchesOf(value)) {
          if (!(await this.#room(batch.length, ends))) break;
          this.#send(batch, options);
        }
      }
    } catch (thrown) {
      if (!this.#hasEnded && !signal?.aborted && !until?.aborted) inputError = thrown ?? new Error("the input failed");
    }
    this.#waitsForInput = false;
    // What nobody has been sent is in the input still.
    if (until?.aborted && !isStream) {
      for (const flight of this.#flights) if (!flight.wasSent()) flight.abort.abort(until.reason);
    }
    await Promise.all([...this.#flights].map(({ ended }) => ended));
    this.#store([], this.#placeIn(place, this.#failed ?? { counter: this.#counter, chain: this.#chain }));
    // Of several the one that needs a resume: what was refused behind it is put then.
    const error = this.#thrown?.error ?? this.#doubt ?? this.#failed?.error ?? inputError;
    if (error !== undefined && error !== null) throw error;
    if (signal?.aborted) throw signal.reason;
    return this.#counter - 1;
  }

  /** Sends again what an earlier process, or this one, did not hear the end of. Resolves with how many messages there were. */
  async resume(
    { signal, until, onStored = () => {} }: Pick<PutOptions, "signal" | "until" | "onStored"> = {},
  ): Promise<number> {
    const { state } = this.#client;
    let count = 0;
    for (const run of runsOf(state.intents(this.#topic))) {
      throwIfAborted(until);
      const outcome = await this.#again(run, signal);
      const isOk = outcome.kind === "answer" && outcome.answer.status === "OK";
      if (isOk || isForgotten(outcome)) {
        state.write(() => {
          const [begin] = run;
          if (begin !== undefined) {
            state.settleIntents(begin, { first: begin.counter, last: begin.counter + run.length - 1 });
          }
        });
      }
      if (!isOk) throw outcomeError(`put ${run.length} messages into topic "${this.#topic}" again`, outcome);
      count += run.length;
      onStored(run.length, run.reduce((sum, { body }) => sum + body.byteLength, 0));
    }
    return count;
  }

  #stopped(...signals: readonly (AbortSignal | undefined)[]): AbortSignal {
    return AbortSignal.any([this.#stop.signal, ...signals.filter((signal) => signal !== undefined)]);
  }

  /** What is known is noted while nothing else is to be done: after a kill nobody has to ask what became of it. */
  #settleIdle(): void {
    if (!this.#waitsForInput || this.#flights.size > 0) return;
    try {
      this.#store([], null, { durable: false });
    } catch (error) {
      this.#thrown ??= { error };
      this.#stop.abort();
    }
  }

  get #hasEnded(): boolean {
    return this.#failed !== null || this.#doubt !== null || this.#thrown !== null;
  }

  async #again(run: readonly PutIntent[], signal: AbortSignal | undefined): Promise<Outcome> {
    const [first] = run;
    if (first === undefined) throw new Error("a run without an intent");
    const { counter, session, msgId } = first;
    const own = this.#client.state.session();
    const lines = {
      low: counter,
      ...(session.number === own.number && session.key === own.key ? {} : { fromSession: session }),
      ...(msgId === null ? {} : { msgId }),
    };
    return await this.#client.ask({ name: "PUT", topic: this.#topic, counter, lines, ...bodiesOf(run) }, { signal });
  }

  /** False: nothing more is to be sent. */
  async #room(count: number, ends: AbortSignal): Promise<boolean> {
    const isFull = () => this.#messages + count > windowMessages || this.#bytes >= windowBytes;
    while (!this.#hasEnded && !ends.aborted && isFull()) {
      await Promise.race([...this.#flights].map(({ ended }) => ended));
    }
    return !this.#hasEnded && !ends.aborted;
  }

  #send(batch: readonly Uint8Array[], options: PutOptions): void {
    const first = this.#counter;
    this.#counter += batch.length;
    const { msgId = null } = options;
    const chain = this.#chain;
    for (const body of batch) this.#chain = chained(this.#chain, body);
    const session = this.#client.state.session();
    const intents = batch.map((body, place) => ({ topic: this.#topic, session, counter: first + place, msgId, body }));
    this.#store(intents, this.#placeIn(options.input ?? null, { counter: this.#counter, chain: this.#chain }));
    // What is below is settled on the disk as well: the server may forget it.
    const low = Math.min(first, ...[...this.#flights].map((flight) => flight.first));
    const bytes = batch.reduce((sum, { byteLength }) => sum + byteLength, 0);
    const abort = new AbortController();
    const signal = options.signal === undefined ? abort.signal : AbortSignal.any([abort.signal, options.signal]);
    const lines = { low, ...(first > low ? { after: first - 1 } : {}), ...(msgId === null ? {} : { msgId }) };
    let wasSent = false;
    const asked = this.#client.ask({ name: "PUT", topic: this.#topic, counter: first, lines, ...bodiesOf(intents) }, {
      signal,
      onSent: () => wasSent = true,
    });
    const flight: Flight = {
      chain,
      first,
      count: batch.length,
      bytes,
      abort,
      wasSent: () => wasSent,
      ended: this.#landed(asked, () => flight, options),
    };
    this.#flights.add(flight);
    this.#messages += batch.length;
    this.#bytes += bytes;
  }

  async #landed(asked: Promise<Outcome>, flightOf: () => Flight, { onStored, signal }: PutOptions): Promise<void> {
    let outcome: Outcome | null = null;
    let why: unknown;
    try {
      outcome = await asked;
    } catch (thrown) {
      why = thrown;
      if (!signal?.aborted && this.#failed === null) this.#thrown ??= { error: thrown };
    }
    const flight = flightOf();
    this.#flights.delete(flight);
    this.#messages -= flight.count;
    this.#bytes -= flight.bytes;
    // What comes behind a message that was refused names it as the one before, and can never be stored.
    const isBehind = this.#failed !== null && flight.first > this.#failed.counter;
    if (outcome === null) {
      if (isBehind) this.#settle(flight);
      else if (!flight.wasSent()) this.#fail(flight, why); // it is in the input still
    } else if (outcome.kind === "answer" && outcome.answer.status === "OK") {
      this.#settle(flight);
      onStored?.(flight.count, flight.bytes);
    } else if (outcome.kind === "unknown") {
      if (isBehind) this.#settle(flight);
      else this.#doubt ??= outcomeError(this.#whatOf(flight), outcome);
    } else {
      this.#fail(flight, outcomeError(this.#whatOf(flight), outcome));
    }
    if (this.#hasEnded) this.#stop.abort();
    else this.#settleIdle();
  }

  /** Definitely not done, and nothing behind it. */
  #fail(flight: Flight, error: unknown): void {
    this.#settle(flight);
    if (this.#failed !== null && flight.first > this.#failed.counter) return;
    this.#failed = { counter: flight.first, chain: flight.chain, error };
    for (const other of this.#flights) if (other.first > flight.first) other.abort.abort(error);
  }

  #whatOf({ first, count }: Flight): string {
    const which = count === 1 ? `message ${first}` : `messages ${first} to ${first + count - 1}`;
    return `put ${this.#counter === 2 ? "the message" : which} into topic "${this.#topic}"`;
  }

  #settle({ first, count }: Flight): void {
    this.#settled.push({ first, last: first + count - 1 });
  }

  /** Up to, and without, the message of this counter. */
  #placeIn(
    input: InputPlace | null,
    { counter, chain }: { readonly counter: number; readonly chain: string },
  ): InputPlace | null {
    return input === null ? null : { kind: input.kind, taken: input.taken + counter - 1, chain };
  }

  #store(intents: readonly PutIntent[], place: InputPlace | null, options?: { readonly durable?: boolean }): void {
    const { state } = this.#client;
    if (intents.length === 0 && this.#settled.length === 0 && place === null) return;
    const session = state.session();
    state.write(() => {
      for (const range of this.#settled) state.settleIntents({ topic: this.#topic, session }, range);
      for (const intent of intents) state.addIntent(intent);
      if (place !== null) state.setInput(this.#topic, place);
    }, options);
    this.#settled = [];
  }
}

function bodiesOf(intents: readonly PutIntent[]): { body: Uint8Array } | { batch: Uint8Array[] } {
  const [first] = intents;
  return intents.length === 1 && first !== undefined
    ? { body: first.body }
    : { batch: intents.map(({ body }) => body) };
}

/** In pieces that a request may have. Throws BAD_DATA for a message over the limit. */
function* batchesOf(items: readonly Uint8Array[]): Generator<Uint8Array[], void, void> {
  let batch: Uint8Array[] = [];
  let bytes = 0;
  for (const item of items) {
    if (item.byteLength > bodyBytesMax) {
      throw new BatonError("BAD_DATA", `A message of ${item.byteLength} bytes is over the limit of ${bodyBytesMax}`);
    }
    if (batch.length > 0 && (batch.length >= batchMessages || bytes + item.byteLength > batchBytes)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(item);
    bytes += item.byteLength;
  }
  if (batch.length > 0) yield batch;
}

/** Intents that can go in one request: of one session, counter behind counter, without a key. */
function runsOf(intents: readonly PutIntent[]): PutIntent[][] {
  const runs: PutIntent[][] = [];
  let bytes = 0;
  for (const intent of intents) {
    const run = runs.at(-1);
    const before = run?.at(-1);
    const follows = run !== undefined && before !== undefined && before.counter + 1 === intent.counter &&
      before.session.number === intent.session.number && before.session.key === intent.session.key &&
      before.msgId === null && intent.msgId === null && run.length < batchMessages &&
      bytes + intent.body.byteLength <= batchBytes;
    if (follows) run.push(intent);
    else {
      runs.push([intent]);
      bytes = 0;
    }
    bytes += intent.body.byteLength;
  }
  return runs;
}

/** Nothing more can be found out of it. */
function isForgotten(outcome: Outcome): boolean {
  return outcome.kind === "answer" && ["STALE_OP", "COUNTER_REUSE", "BAD_REQUEST"].includes(outcome.answer.status);
}

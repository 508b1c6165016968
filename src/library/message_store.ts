/** A store of failed messages for a program. The messages are tried again until they succeed or become dead letters. */
import { join, resolve } from "node:path";
import { BatonError } from "../base/errors.ts";
import { checkStoreName } from "../retry/queue/store_name.ts";
import { type DeathReason, type MessageChange, type MessageState, messageStates } from "../retry/queue/message_life.ts";
import { type MessageFilter, refusalReason } from "../retry/queue/store_methods.ts";
import { operatorChangesMax } from "../retry/queue/retry_store_limits.ts";
import { RetryStore } from "../retry/queue/sqlite/retry_store.ts";
import type { FirstTry, StateTotals, StoredMessage } from "../retry/queue/stored_message.ts";
import { readStoreRules } from "../retry/processor/retry_rules.ts";
import { failedTry, FunctionTarget } from "../retry/targets/function_target.ts";
import { CleanupScope, onAbort, RunningCalls } from "../base/support/abort.ts";
import { systemClock } from "../base/support/clock.ts";
import { userStateFolder } from "../base/support/home_folder.ts";
import {
  arrayForm,
  checkArgument,
  checkedBytes,
  checkOptions,
  choiceForm,
  functionForm,
  type OptionForms,
  textForm,
} from "./check_arguments.ts";
import { checkSqlite } from "./check_runtime.ts";
import {
  type MessageStoreOptions,
  noSources,
  policyForms,
  processForms,
  type ProcessOptions,
  type ProcessorReport,
  storeForms,
  storeValues,
} from "./message_store_options.ts";

/** A message of the store. All times are milliseconds since 1970. */
export interface MessageInfo {
  /** The ID of the message, which differs from the IDs in all other stores. */
  readonly id: string;
  /**
   * The key of the message; null if it has none. If the processor has `order: "key"`, only one message of each key is
   * tried at a time.
   */
  readonly key: string | null;
  readonly state: MessageState;
  /**
   * How many tries have ended since the message was stored or redriven, including the try that failed before it was
   * stored.
   */
  readonly tries: number;
  /** How many tries ended because their process died. */
  readonly crashes: number;
  readonly storedMs: number;
  /** When the last try ended; null if there was none. */
  readonly lastTryMs: number | null;
  /** When the next try is due; null if there is none. */
  readonly nextTryMs: number | null;
  /** Why the message is dead or was dropped; null if it is neither. */
  readonly reason: DeathReason | null;
  /** The error message of the last failure; null if there is none. */
  readonly error: string | null;
  /** The size of the body, in bytes. */
  readonly bytes: number;
}

export interface MessageWithBody extends MessageInfo {
  /** The body; null if the message has ended, because the body is then removed. */
  readonly body: Uint8Array | null;
}

/** The state of a message directly after it was stored. */
export interface AddedMessage {
  readonly id: string;
  readonly state: MessageState;
  /** When the next try is due, in milliseconds since 1970; null for a dead letter. */
  readonly nextTryMs: number | null;
}

export interface AddMessageOptions {
  readonly key?: string;
  /**
   * The error message of a try that has failed already, which counts as the first try. By default, the message was not
   * tried yet and is due immediately.
   */
  readonly failure?: string;
}

const addForms: OptionForms<AddMessageOptions> = { key: textForm, failure: textForm };

/** A message to process, as the handler receives it. */
export interface MessageTry {
  readonly id: string;
  readonly key: string | null;
  readonly body: Uint8Array;
  /** Returns the body, decoded from UTF-8. */
  text(): string;
  /** The number of the try, from 1. */
  readonly attempt: number;
  /**
   * Aborts after `attemptTimeoutMs`, when the lease on the message is lost, or when the processor has to end. The
   * handler must then stop its work.
   */
  readonly signal: AbortSignal;
  /**
   * A number that increases with every try of the message. A store that remembers the highest number can therefore
   * refuse requests of an older try.
   */
  readonly fencingNumber: bigint;
}

/**
 * Processes a message. The message is done if the handler resolves. If the handler rejects, the message is tried again
 * as the policy says; if it rejects with PermanentFailure, the message becomes a dead letter immediately.
 */
export type MessageHandler = (message: MessageTry) => Promise<void> | void;

/** Selects the messages that meet all of these conditions. */
export type MessageSelection = Omit<MessageFilter, "states">;

const selectionForms: OptionForms<MessageSelection> = { key: textForm, reason: textForm, error: textForm };
const stateForm = choiceForm(...messageStates);
const statesForm = arrayForm(stateForm.expected, stateForm);

/**
 * A message store in a folder of this machine. Calls reject with LOCK_BUSY if another process writes for 30 s,
 * STORE_FULL if the limits or the disk are reached (nothing was changed), IO if the disk fails or data is damaged, or
 * CONFIG or CANNOT_CREATE if the folder cannot be used.
 */
export class MessageStore implements AsyncDisposable {
  readonly name: string;
  readonly folder: string;
  readonly #options: MessageStoreOptions;
  #store: Promise<RetryStore> | null = null;
  readonly #closed = new AbortController();
  readonly #processing = new RunningCalls();

  /**
   * Names the store. Creates no files before the first call. Throws USAGE for an invalid name or option, or CONFIG for
   * a user without a home folder.
   */
  constructor(options: MessageStoreOptions = {}) {
    checkOptions("MessageStore", options, storeForms);
    const { name = "default", folder, policy = {} } = options;
    checkOptions("MessageStore: policy", policy, policyForms);
    checkStoreName(name);
    readStoreRules(storeValues(options), noSources);
    this.name = name;
    this.folder = resolve(folder ?? join(userStateFolder("retry", "name one with the option folder"), name));
    this.#options = options;
  }

  /** Stores a message. The message is on the disk when the promise resolves. */
  async add(body: string | Uint8Array, options: AddMessageOptions = {}): Promise<AddedMessage> {
    checkOptions("add", options, addForms);
    const { key, failure } = options;
    const tried = failure === undefined ? null : { outcome: "retry", retryAfterMs: null, error: failure } as const;
    return await this.#accept(body, key, tried);
  }

  /**
   * Runs `work`, and returns null if it succeeds. If it fails, stores the message, and the failure counts as its first
   * try. Rejects if the message cannot be stored; the `cause` is then the failure of `work`.
   */
  async tryOrAdd(
    body: string | Uint8Array,
    work: () => Promise<unknown> | unknown,
    options: Pick<AddMessageOptions, "key"> = {},
  ): Promise<AddedMessage | null> {
    checkArgument("tryOrAdd", "the work", work, functionForm);
    checkOptions("tryOrAdd", options, { key: textForm });
    const { key } = options;
    try {
      await work();
      return null;
    } catch (cause) {
      const { end, error } = failedTry(cause);
      try {
        return await this.#accept(body, key, { ...end, outcome: end.outcome === "final" ? "final" : "retry", error });
      } catch (thrown) {
        if (!(thrown instanceof BatonError)) throw thrown;
        throw new BatonError(
          thrown.code,
          `${thrown.message}; the message was not stored, and its work failed: ${error}`,
          { cause },
        );
      }
    }
  }

  /**
   * Lists the messages that are in one of these `states`, the oldest first. By default, lists the messages in all
   * states.
   */
  async *list(
    options: MessageSelection & { readonly states?: readonly MessageState[] } = {},
  ): AsyncGenerator<MessageInfo, void, void> {
    checkOptions("list", options, { ...selectionForms, states: statesForm });
    const { states = messageStates, ...selection } = options;
    const store = await this.#opened();
    for (let afterSeq = 0;;) {
      const found = await store.call("list", { states, ...selection }, { afterSeq, max: operatorChangesMax });
      const last = found.at(-1);
      if (last === undefined) return;
      yield* found.map(infoOf);
      afterSeq = last.seq;
    }
  }

  /** Returns a message with its body. Rejects with NOT_FOUND, or with BAD_DATA if the message is damaged. */
  async get(id: string): Promise<MessageWithBody> {
    const message = await (await this.#opened()).call("show", id);
    if (message === null) throw new BatonError("NOT_FOUND", `There is no message ${id} in store "${this.name}"`);
    return { ...infoOf(message), body: message.body ?? null };
  }

  /** Returns how many messages are in each state, and their size. */
  async totals(): Promise<Record<MessageState, StateTotals>> {
    return await (await this.#opened()).call("totals");
  }

  /** Makes a waiting message due now. Rejects with NOT_FOUND, or with FALSE if the message is not waiting. */
  retryNow(id: string): Promise<void> {
    return this.#change(id, "retry");
  }

  /** Cancels a waiting message. Rejects with NOT_FOUND, or with FALSE if the message is not waiting. */
  cancel(id: string): Promise<void> {
    return this.#change(id, "cancel");
  }

  /**
   * Makes a dead letter a waiting message again, which can be tried as often as a new one. Rejects with NOT_FOUND, or
   * with FALSE if the message is not dead.
   */
  redrive(id: string): Promise<void> {
    return this.#change(id, "redrive");
  }

  /** Drops a dead letter. Rejects with NOT_FOUND, or with FALSE if the message is not dead. */
  purge(id: string): Promise<void> {
    return this.#change(id, "purge");
  }

  /**
   * Redrives all dead letters that match. Each is redriven only once, even if it dies again before the call ends.
   * Returns their number.
   */
  async redriveAll(selection: MessageSelection = {}): Promise<number> {
    checkOptions("redriveAll", selection, selectionForms);
    const store = await this.#opened();
    const number = await store.call("startRedrive");
    for (let done = 0;;) {
      const count = await store.call("redrive", number, selection, operatorChangesMax, Date.now());
      done += count;
      if (count < operatorChangesMax) return done;
    }
  }

  /** Drops all dead letters that match. Returns their number. */
  async purgeAll(selection: MessageSelection = {}): Promise<number> {
    checkOptions("purgeAll", selection, selectionForms);
    const store = await this.#opened();
    for (let done = 0;;) {
      const count = await store.call("purge", selection, Date.now());
      if (count === 0) return done;
      done += count;
    }
  }

  /**
   * If true, all processors of the store stop starting tries; if false, they start tries again. The store keeps this
   * setting.
   */
  async setPaused(isPaused: boolean): Promise<void> {
    await (await this.#opened()).call("setPaused", isPaused);
  }

  /**
   * Gives each message to `handler` when the message is due, until `signal` aborts or the condition of `until` is true.
   * Several processors, including `baton retry-processor run`, can share a store: each message has only one try at a
   * time. When a process dies, another process retries its messages in flight after `leaseMs`. After the signal, tries
   * in flight may continue for `drainMs`. Resolves when all tries have ended.
   *
   * Rejects with CONFIG if the boot clock of the machine cannot be read (Node.js on macOS), with IO if messages are
   * damaged, or as all calls do. The handler also receives messages that `baton retry-processor` stored with a command
   * or an HTTP request.
   */
  async process(handler: MessageHandler, options: ProcessOptions = {}): Promise<void> {
    await this.#processing.run(() => this.#process(handler, options));
  }

  /** Ends all processors, and then closes the store. */
  async close(): Promise<void> {
    this.#closed.abort(new DOMException(`Message store "${this.name}" was closed`, "AbortError"));
    await this.#processing.ended();
    const store = await this.#store?.catch(() => null);
    await store?.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #process(handler: MessageHandler, options: ProcessOptions): Promise<void> {
    checkArgument("process", "the handler", handler, functionForm);
    checkOptions("process", options, processForms);
    const { signal, until = "stopped", onReport } = options;
    const values = storeValues(this.#options, options);
    const run = (message: Parameters<FunctionTarget["deliver"]>[0], ends: AbortSignal) =>
      handler({
        id: message.id,
        key: message.key,
        body: message.body,
        text: () => new TextDecoder().decode(message.body),
        attempt: message.tries + 1,
        signal: ends,
        fencingNumber: BigInt(message.fence),
      });
    const [{ StoreProcessor }, { resolveSettings }, { connectionSettings }] = await Promise.all([
      import("../retry/processor/store_processor.ts"),
      import("../base/config/resolve_settings.ts"),
      import("../coordination/settings/coordination_settings.ts"),
    ]);
    await using processor = await StoreProcessor.open({
      location: this,
      openStore: (options) => RetryStore.open(this.folder, options),
      target: new FunctionTarget({ run, timeoutMs: values.retryAttemptTimeout, clock: systemClock() }),
      values: { ...resolveSettings(connectionSettings, noSources), ...values, killAfter: 0 },
      sources: noSources,
      log: (level, event, sentence) => onReport?.({ level, event, sentence } satisfies ProcessorReport),
      until: until === "once" ? "tried" : until,
      topics: null,
    });
    using _stops = new CleanupScope(
      ...[this.#closed.signal, signal].map((end) => onAbort(end, () => processor.stop())),
    );
    await processor.run();
  }

  async #accept(body: string | Uint8Array, key: string | undefined, tried: FirstTry | null): Promise<AddedMessage> {
    // The bytes are copied, because they are moved to another thread.
    const bytes = checkedBytes("The message", body).slice();
    const head = { kind: "command", argv: null, cwd: null } as const;
    const store = await this.#opened();
    const [stored] = await store.call("accept", [{ head, body: bytes, key: key ?? null, tried }], Date.now());
    if (stored === undefined) throw new BatonError("INTERNAL", "nothing was stored");
    const { id, life: { state, nextAtMs } } = stored;
    return { id, state, nextTryMs: state === "waiting" ? nextAtMs : null };
  }

  async #change(id: string, change: MessageChange): Promise<void> {
    const refusal = await (await this.#opened()).call("change", id, change, Date.now());
    if (refusal === null) return;
    const what = `Cannot ${change} message ${id} of store "${this.name}"`;
    throw new BatonError(
      refusal === "unknown" ? "NOT_FOUND" : "FALSE",
      `${what}: ${refusalReason(refusal, this.name)}`,
    );
  }

  async #opened(): Promise<RetryStore> {
    if (this.#closed.signal.aborted) throw this.#closed.signal.reason;
    checkSqlite("a message store");
    const opening = this.#store ??= RetryStore.open(this.folder, {
      rules: readStoreRules(storeValues(this.#options), noSources),
    });
    try {
      return await opening;
    } catch (thrown) {
      if (this.#store === opening) this.#store = null;
      throw thrown;
    }
  }
}

function infoOf(message: StoredMessage): MessageInfo {
  const { id, key, state, tries, crashes, firstMs, lastMs, nextMs, reason, error, bytes } = message;
  return {
    id,
    key,
    state,
    tries,
    crashes,
    storedMs: firstMs,
    lastTryMs: lastMs,
    nextTryMs: nextMs,
    reason,
    error,
    bytes,
  };
}

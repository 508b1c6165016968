/**
 * Carries out the calls of a message store. message_life.ts decides the next state of a message; the engine reads and
 * writes rows. Calls are written as steps, which never wait for SQLite, but wait for answers of PostgreSQL
 * (retry_rows.ts). Limits are checked first, so that a refused call changes nothing.
 */
import { BatonError } from "../../base/errors.ts";
import { awaitAnswer, type StepGenerator, type ValueOrPromise } from "../../base/support/steps.ts";
import {
  lifeAfterCrash,
  lifeAfterDamage,
  lifeAfterReturn,
  lifeAfterTry,
  type MessageChange,
  type MessageLife,
  newLife,
} from "./message_life.ts";
import {
  changedMessageLife,
  isPendingLetter,
  limitRowsByBytes,
  messageLifeInRow,
  messageNumberOfId,
  messageOfRow,
  stateOfUnchangedMessage,
} from "./message_row.ts";
import { checkMessageSizes, operatorChangesMax, storedMessageOverheadBytes } from "./retry_store_limits.ts";
import type { MessageContent, MessageLifeChange, MessageRow, NewRow, RetryRows } from "./retry_rows.ts";
import type {
  AcceptedMessage,
  ChangeRefusal,
  Claim,
  ClaimRequest,
  IngestMessage,
  MessageConditions,
  MessageFilter,
  PendingDeadLetter,
  StoreMethod,
  StoreMethods,
  TryReport,
} from "./store_methods.ts";
import type { StoreRules } from "./store_rules.ts";
import type { ClaimedMessage, NewMessage, StoredMessage } from "./stored_message.ts";

type StorePart<Name extends StoreMethod> = {
  readonly [Own in Name]: (
    ...values: Parameters<StoreMethods[Own]>
  ) => StepGenerator<ReturnType<StoreMethods[Own]>> | ValueOrPromise<ReturnType<StoreMethods[Own]>>;
};

export class RetryEngine {
  readonly #rows: RetryRows;
  readonly #rules: StoreRules;
  readonly #random: () => number;
  /** The object that implements each call. */
  readonly #parts = new Map<StoreMethod, object>();

  constructor(rows: RetryRows, rules: StoreRules, random: () => number = Math.random) {
    this.#rows = rows;
    this.#rules = rules;
    this.#random = random;
  }

  /** Starts a call. If the engine itself must decide something, returns its steps; otherwise the answer of the rows. */
  call<Name extends StoreMethod>(
    method: Name,
    ...values: Parameters<StoreMethods[Name]>
  ): StepGenerator<ReturnType<StoreMethods[Name]>> | ValueOrPromise<ReturnType<StoreMethods[Name]>> {
    return this.#partOf(method)[method](...values);
  }

  #partOf<Name extends StoreMethod>(method: Name): StorePart<Name> {
    let part = this.#parts.get(method);
    if (part === undefined) {
      const { messages, processors, letters, topics } = this.#rows;
      part = [this, messages, processors, letters, topics, this.#rows].find((one) => method in one) ?? this;
      this.#parts.set(method, part);
    }
    return part as unknown as StorePart<Name>;
  }

  storeName(): string {
    return this.#rows.key;
  }

  *accept(messages: readonly NewMessage[], callerMs: number): StepGenerator<AcceptedMessage[]> {
    const nowMs = this.#rows.nowMs(callerMs);
    const added = yield* this.#newRows(messages, nowMs);
    const first = yield* awaitAnswer(this.#rows.messages.insert(added, nowMs));
    return added.map(({ life }, at) => ({ id: this.#idOf(first + at), life: this.#localLife(life) }));
  }

  *ingest(topic: string, messages: readonly IngestMessage[], callerMs: number): StepGenerator<number> {
    const head = { kind: "command", argv: null, cwd: null } as const;
    for (;;) {
      const last = yield* awaitAnswer(this.#rows.topics.lastIngestedId(topic));
      const fresh = messages.filter(({ id }) => id > last);
      if (fresh.length === 0) return 0;
      const nowMs = this.#rows.nowMs(callerMs);
      const rows = yield* this.#newRows(fresh.map(({ body }) => ({ head, body, key: null, tried: null })), nowMs);
      const added = rows.map((row, at) => ({ ...row, id: fresh[at]?.id ?? 0 }));
      // If `add` returns false, another process, or an earlier copy of the statement, has stored some messages. The
      // messages are then compared again.
      if (yield* awaitAnswer(this.#rows.topics.add(topic, last, added, nowMs))) return fresh.length;
    }
  }

  /** Makes the rows of new messages. Throws STORE_FULL or BAD_DATA. */
  *#newRows(messages: readonly NewMessage[], nowMs: number): StepGenerator<NewRow[]> {
    let bytes = 0;
    let storedBytes = 0;
    for (const message of messages) {
      storedBytes += checkMessageSizes(message, this.#rows.bodyBytesMax) + storedMessageOverheadBytes;
      bytes += message.body.byteLength;
    }
    yield* this.#requireRoom(messages.length, bytes, storedBytes);
    return messages.map((message) => ({ message, life: newLife(message.tried, this.#rules, nowMs, this.#random) }));
  }

  /**
   * Throws STORE_FULL if the additional messages exceed a limit. If other processes store messages at the same time,
   * the limit may still be exceeded.
   */
  *#requireRoom(count: number, bytes: number, storedBytes: number): StepGenerator {
    const used = yield* awaitAnswer(this.#rows.messages.used());
    const { maxMessages, maxBytes } = this.#rules;
    const why = used.count + count > maxMessages
      ? `it has ${used.count} messages, the limit is ${maxMessages} (--max-messages)`
      : used.bytes + bytes > maxBytes
      ? `its messages have ${used.bytes} bytes, ${bytes} more exceed the limit of ${maxBytes} (--max-bytes)`
      : this.#rows.whyNoRoom(storedBytes);
    if (why !== null) throw new BatonError("STORE_FULL", `${this.#rows.what} is full: ${why}`);
  }

  *fullReason(): StepGenerator<string | null> {
    try {
      const why = yield* awaitAnswer(this.#rows.whyNotWritable());
      if (why === null) yield* this.#requireRoom(1, 1, 1);
      return why;
    } catch (error) {
      if (error instanceof BatonError) return error.message;
      throw error;
    }
  }

  *leave(owner: number): StepGenerator {
    yield* this.#giveBackUnknown(owner, Date.now());
    yield* awaitAnswer(this.#rows.processors.remove(owner));
  }

  *reclaim(options: Parameters<StoreMethods["reclaim"]>[0]): StepGenerator<number> {
    const { processors } = this.#rows;
    const ended = yield* awaitAnswer(processors.overdue(options));
    if (ended.length === 0) return 0;
    const count = yield* this.#changeFound(options.nowMs, () => processors.inFlight(ended), (row, nowMs) => ({
      next: lifeAfterCrash(messageLifeInRow(row), this.#rules, nowMs, this.#random),
      tried: { error: "the processor died during the try" },
    }));
    yield* awaitAnswer(processors.removeOverdue(ended));
    return count;
  }

  /** Finds and changes messages until none is left. Returns the number of changed messages. */
  *#changeFound(
    callerMs: number,
    find: () => ValueOrPromise<readonly MessageRow[]>,
    decide: (
      row: MessageRow,
      nowMs: number,
    ) => Pick<MessageLifeChange, "tried"> & { readonly next: MessageLife | null },
  ): StepGenerator<number> {
    for (let count = 0;;) {
      const found = yield* awaitAnswer(find());
      const nowMs = this.#rows.nowMs(callerMs);
      const changes = found.flatMap((row): MessageLifeChange[] => {
        const { next, ...rest } = decide(row, nowMs);
        return next === null ? [] : [{ row, next, nowMs, ...rest }];
      });
      if (changes.length === 0) return count;
      count += yield* awaitAnswer(this.#rows.messages.write(changes));
    }
  }

  *claim(order: ClaimRequest): StepGenerator<Claim> {
    const { processors } = this.#rows;
    const ageMs = Math.max(0, Math.round(Date.now() - order.nowMs));
    yield* this.#giveBackUnknown(order.owner, order.nowMs);
    const claim = yield* awaitAnswer(processors.take(order, ageMs));
    if (claim === null) {
      throw new BatonError(
        "LOCK_LOST",
        "The lease of this processor expired, and another process took its messages back",
      );
    }
    const nowMs = this.#rows.nowMs(order.nowMs);
    const messages: ClaimedMessage[] = [];
    const damaged: MessageLifeChange[] = [];
    for (const { row, content } of claim.found) {
      if (typeof content === "object" && content !== null) messages.push({ ...this.#storedMessage(row), ...content });
      else damaged.push({ row, next: lifeAfterDamage(messageLifeInRow(row)), nowMs, damage: content ?? "" });
    }
    if (damaged.length > 0) yield* awaitAnswer(processors.writeDamaged(damaged));
    return { messages, nextMs: claim.nextMs };
  }

  /** Returns to the queue the messages of a claim whose answer was lost. */
  *#giveBackUnknown(owner: number, callerMs: number): StepGenerator {
    yield* this.#changeFound(callerMs, () => this.#rows.processors.unknown(owner), (row, nowMs) => {
      const life = messageLifeInRow(row);
      return { next: lifeAfterReturn(life, life.fence, nowMs) };
    });
  }

  /** Records the end of a try. After a failure, another call writes the same decision. */
  *finish(
    { seq, fence, owner, end, error, nowMs: callerMs, pauseMs = 0 }: TryReport,
  ): StepGenerator<MessageLife | null> {
    const { processors } = this.#rows;
    const own = processors.claimed(seq, owner);
    if (own === null) return null;
    const nowMs = this.#rows.nowMs(callerMs);
    const life = messageLifeInRow(own.row);
    const rules = this.#rules;
    const next = own.decided !== null
      ? own.decided.next
      : end === null
      ? lifeAfterReturn(life, fence, nowMs + pauseMs)
      : lifeAfterTry(life, fence, end, { rules, nowMs, random: this.#random });
    if (next === null || life.fence !== fence) return null;
    const { row } = own;
    own.decided ??= end === null ? { row, next, nowMs } : { row, next, nowMs, tried: { error } };
    return (yield* awaitAnswer(processors.writeEnd(own))) ? this.#localLife(next) : null;
  }

  *list(
    filter: MessageFilter,
    page: { readonly afterSeq: number; readonly max: number },
  ): StepGenerator<StoredMessage[]> {
    const found = yield* awaitAnswer(this.#rows.messages.find({ ...filter, ...page }));
    return found.map((row) => this.#storedMessage(row));
  }

  *show(id: string): StepGenerator<(StoredMessage & Partial<MessageContent>) | null> {
    const seq = messageNumberOfId(id, this.#rows.key);
    const [found] = seq === null ? [] : yield* awaitAnswer(this.#rows.messages.read([seq]));
    if (found === undefined) return null;
    const { row, content } = found;
    if (typeof content === "string") throw new BatonError("BAD_DATA", `${this.#rows.what} is damaged: ${content}`);
    return { ...this.#storedMessage(row), ...content };
  }

  /** Changes one message. If another process changes the message at the same moment, decides again. */
  *change(id: string, change: MessageChange, callerMs: number): StepGenerator<ChangeRefusal | null> {
    const { messages } = this.#rows;
    const seq = messageNumberOfId(id, this.#rows.key);
    for (;;) {
      const row = seq === null ? null : yield* awaitAnswer(messages.row(seq));
      if (row === null) return "unknown";
      if (!messages.isIntact(row) && change !== "cancel" && change !== "purge") {
        const what = `message ${this.#idOf(Number(row["seq"]))}`;
        throw new BatonError("BAD_DATA", `${this.#rows.what} is damaged: ${what}`);
      }
      const changed = yield* this.#changeRows([row], change, callerMs);
      if (changed === null) return stateOfUnchangedMessage(row);
      if (changed > 0) return null;
    }
  }

  *redrive(number: number, filter: MessageConditions, max: number, callerMs: number): StepGenerator<number> {
    const limit = Math.min(max, operatorChangesMax);
    for (let done = 0;;) {
      const query = { ...filter, states: ["dead"], afterSeq: 0, max: limit - done, redrive: number } as const;
      const found = yield* awaitAnswer(this.#rows.messages.find(query));
      done += (yield* this.#changeRows(found, "redrive", callerMs, { redrive: number })) ?? 0;
      if (found.length === 0 || done >= limit) return done;
    }
  }

  *purge(filter: MessageConditions, callerMs: number): StepGenerator<number> {
    const query = { ...filter, states: ["dead"], afterSeq: 0, max: operatorChangesMax, withDamaged: true } as const;
    for (;;) {
      const found = yield* awaitAnswer(this.#rows.messages.find(query));
      const gone = (yield* this.#changeRows(found, "purge", callerMs)) ?? 0;
      if (found.length === 0 || gone > 0) return gone;
    }
  }

  /** Changes messages; removes damaged ones. Returns how many; null if this change is possible for none of them. */
  *#changeRows(
    found: readonly MessageRow[],
    change: MessageChange,
    callerMs: number,
    more: Pick<MessageLifeChange, "redrive"> = {},
  ): StepGenerator<number | null> {
    const { messages } = this.#rows;
    const nowMs = this.#rows.nowMs(callerMs);
    const damaged = found.filter((row) => !messages.isIntact(row));
    for (const row of damaged) yield* awaitAnswer(messages.remove(Number(row["seq"])));
    const changes = found.flatMap((row): MessageLifeChange[] => {
      const next = damaged.includes(row) ? null : changedMessageLife(row, change, nowMs);
      return next === null ? [] : [{ row, next, nowMs, ...more }];
    });
    if (changes.length === 0) return damaged.length === 0 ? null : damaged.length;
    return damaged.length + (yield* awaitAnswer(messages.write(changes)));
  }

  *pendingDeadLetters(max: number, callerMs: number): StepGenerator<PendingDeadLetter[]> {
    const { letters, messages } = this.#rows;
    yield* awaitAnswer(letters.takeOpen());
    const found = limitRowsByBytes(yield* awaitAnswer(letters.pending(max, callerMs)));
    const pending: PendingDeadLetter[] = [];
    if (found.length === 0) return pending;
    for (const { row, content } of yield* awaitAnswer(messages.read(found.map((row) => Number(row["seq"]))))) {
      if (typeof content === "string") {
        // A dead letter that is damaged is not forwarded. It is delayed, so that other dead letters do not wait for it.
        yield* awaitAnswer(letters.recordForwardFailure(Number(row["seq"]), content, callerMs));
      } else if (content !== null && isPendingLetter(row)) {
        const forwardOffset = row["forward_offset"] === null ? null : Number(row["forward_offset"]);
        pending.push({ ...this.#storedMessage(row), ...content, forwardOffset });
      }
    }
    return pending;
  }

  /** Converts the time of the next try to the caller's clock, because the caller compares it with that clock. */
  #localLife(life: MessageLife): MessageLife {
    return { ...life, nextAtMs: this.#rows.toLocalMs(life.nextAtMs) };
  }

  #storedMessage(row: MessageRow): StoredMessage {
    const forwardError = isPendingLetter(row) ? this.#rows.letters.errorOf(row) : null;
    return messageOfRow(row, { id: this.#idOf(Number(row["seq"])), forwardError });
  }

  #idOf(seq: number): string {
    return `${this.#rows.key}-${seq}`;
  }
}

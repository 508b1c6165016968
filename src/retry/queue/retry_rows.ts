/**
 * The interfaces through which the engine reads and writes rows. `sqlite/sqlite_rows.ts` implements them for a folder:
 * answers are immediate, and a whole call is one transaction. `postgres/postgres_rows.ts` implements them for a shared
 * database: an answer is a promise, each write is a transaction, and other processes write in between.
 */
import type { DatabaseRow } from "../../base/storage/sql_row.ts";
import type { ValueOrPromise } from "../../base/support/steps.ts";
import type { MessageLife } from "./message_life.ts";
import type { ClaimRequest, IngestMessage, MessageFilter, StoreMethod, StoreMethods } from "./store_methods.ts";
import type { ClaimedMessage, NewMessage, StateTotals } from "./stored_message.ts";

/** Calls that need no decision, because each is one read or write of the rows. */
type RowCalls<Names extends StoreMethod> = {
  readonly [Name in Names]: (
    ...values: Parameters<StoreMethods[Name]>
  ) => ValueOrPromise<ReturnType<StoreMethods[Name]>>;
};

/** The row of a message; message_row.ts reads its columns. */
export type MessageRow = DatabaseRow;

export type MessageContent = Pick<ClaimedMessage, "head" | "body">;

/**
 * A row, together with the content of its message if that is stored. If the content is damaged, a sentence about the
 * damage, which was reported.
 */
export interface FoundMessage {
  readonly row: MessageRow;
  readonly content: MessageContent | string | null;
}

export interface NewRow {
  readonly message: NewMessage;
  readonly life: MessageLife;
}

/** A change of a message that the engine has decided. */
export interface MessageLifeChange {
  /** The row before the change. If the message has changed since this row was read, nothing is written. */
  readonly row: MessageRow;
  readonly next: MessageLife;
  /** The time of the decision on the clock of the store. */
  readonly nowMs: number;
  /** The error of a try that has ended; undefined if no try has ended. */
  readonly tried?: { readonly error: string | null };
  /** The reason why the message is damaged and cannot be tried. */
  readonly damage?: string;
  /** The number of the redrive that makes this change. */
  readonly redrive?: number;
}

export interface OwnClaim {
  readonly row: MessageRow;
  /** The decision of an earlier call about the same try, which may already be written. */
  decided: MessageLifeChange | null;
}

export interface RowQuery extends MessageFilter {
  readonly afterSeq: number;
  readonly max: number;
  /** Selects only dead letters that are not forwarded, and that no redrive from this one on has redriven. */
  readonly redrive?: number;
  /** Selects damaged rows, too. */
  readonly withDamaged?: boolean;
}

/** The rows of messages, and values of the whole store. */
export interface MessageRows extends
  RowCalls<
    | ("totals" | "startRedrive" | "countDeadLetters" | "setPaused" | "isPaused" | "waitingTimes" | "forget")
    | ("canBeTried" | "countDamaged")
  > {
  row(seq: number): ValueOrPromise<MessageRow | null>;
  /** Returns the matching messages, the oldest first. */
  find(query: RowQuery): ValueOrPromise<readonly MessageRow[]>;
  /** Returns messages with their content, in the order of `seqs`. Omits messages that no longer exist. */
  read(seqs: readonly number[]): ValueOrPromise<readonly FoundMessage[]>;
  /** Returns true if the row is undamaged. A damaged row can only be removed. */
  isIntact(row: MessageRow): boolean;
  /** Returns number and size of the messages that count towards the limits. */
  used(): ValueOrPromise<StateTotals>;
  /** Stores all messages or none. Returns the number of the first one; the other messages have the next numbers. */
  insert(rows: readonly NewRow[], nowMs: number): ValueOrPromise<number>;
  /** Writes changes. Returns the number of messages that have their change now. */
  write(changes: readonly MessageLifeChange[]): ValueOrPromise<number>;
  /** Removes a damaged message. */
  remove(seq: number): ValueOrPromise<void>;
}

/** The rows of processors, and their claims. */
export interface ProcessorRows extends RowCalls<"register" | "renew" | "processorCount"> {
  /**
   * Claims due messages. Returns null if the lease was given up. `ageMs` is the time since `nowMs` of the order, in
   * milliseconds. `nextMs` is the next due time, or null.
   */
  take(
    order: ClaimRequest,
    ageMs: number,
  ): ValueOrPromise<{ readonly found: readonly FoundMessage[]; readonly nextMs: number | null } | null>;
  /** Writes which messages of `take` are damaged. If that fails, they are found again. */
  writeDamaged(changes: readonly MessageLifeChange[]): ValueOrPromise<unknown>;
  /** Returns messages of claims whose answer was lost. None of the earlier claims can take more of them. */
  unknown(owner: number): ValueOrPromise<readonly MessageRow[]>;
  /** Returns a claim of this processor; null if the message has another owner now. */
  claimed(seq: number, owner: number): OwnClaim | null;
  /** Writes the decision about a claim. Returns false if the message has another owner now. */
  writeEnd(claim: OwnClaim): ValueOrPromise<boolean>;
  /** Returns processors whose lease has expired. They can claim no more messages. */
  overdue(options: Parameters<StoreMethods["reclaim"]>[0]): ValueOrPromise<readonly number[]>;
  /** Returns the next messages that these processors have in flight; an empty list if none are left. */
  inFlight(owners: readonly number[]): ValueOrPromise<readonly MessageRow[]>;
  removeOverdue(owners: readonly number[]): ValueOrPromise<void>;
  /** Removes a processor that has no messages in flight. */
  remove(owner: number): ValueOrPromise<void>;
}

/** The forwarding of dead letters: which are pending, which are being sent, and their errors. */
export interface LetterRows extends
  RowCalls<
    | ("deadLetterBacklog" | "markForwarding" | "markForwarded" | "clearForwardDelays")
    | "recordForwardFailure"
  > {
  /** Makes up to `operatorChangesMax` open dead letters pending. */
  takeOpen(): ValueOrPromise<void>;
  /**
   * Returns pending dead letters that this process may send now. First come those that are being sent; last those that
   * have failed, after their delay.
   */
  pending(max: number, nowMs: number): ValueOrPromise<readonly MessageRow[]>;
  /** Returns the last error of a pending dead letter; if it has none, the last error of the sink. */
  errorOf(row: MessageRow): string | null;
}

/** The last stored message of each topic. */
export interface IngestRows extends RowCalls<"lastIngestedId" | "forgetIngested"> {
  /**
   * Stores messages of a topic after the message `last`. If `last` is no longer the last one, returns false and changes
   * nothing.
   */
  add(topic: string, last: number, messages: readonly IngestedRow[], nowMs: number): ValueOrPromise<boolean>;
}

export interface IngestedRow extends NewRow, Pick<IngestMessage, "id"> {}

/** All rows of a store, and values of the disk or database that contains them. */
export interface RetryRows extends RowCalls<"reserveLog" | "disk" | "damageCount"> {
  readonly messages: MessageRows;
  readonly processors: ProcessorRows;
  readonly letters: LetterRows;
  readonly topics: IngestRows;
  /** The random name at the start of all message ids. */
  readonly key: string;
  /** The store as the subject of a sentence, such as "The message store in /srv". */
  readonly what: string;
  readonly bodyBytesMax: number;
  /** Returns the time on the clock of the store. `callerMs` is the wall clock of the caller. */
  nowMs(callerMs: number): number;
  /** Converts a time of the store to the wall clock of this process. */
  toLocalMs(atMs: number): number;
  /** Returns the reason why nothing can be written; null if writing is possible. */
  whyNotWritable(): ValueOrPromise<string | null>;
  /** Returns the reason why the disk has no room for this number of additional bytes; null if it has room. */
  whyNoRoom(bytes: number): string | null;
}

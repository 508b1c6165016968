/**
 * The rows of a message store, as the engine sees them. The engine decides; through these interfaces it reads and
 * writes what is stored. `sqlite/sqlite_rows.ts` implements them for a folder: an answer is there immediately, and all
 * that a call does is one transaction. `postgres/postgres_rows.ts` implements them for a database that processors
 * share: an answer is a promise, each write is a transaction of its own, and other processes write in between.
 */
import type { DatabaseRow } from "../../base/storage/sql_row.ts";
import type { Answer } from "../../base/support/steps.ts";
import type { MessageLife } from "./message_life.ts";
import type { ClaimOrder, IngestMessage, MessageFilter, StoreMethod, StoreMethods } from "./store_methods.ts";
import type { ClaimedMessage, NewMessage, StateTotals } from "./stored_message.ts";

/** Calls of a store that decide nothing: each is one read or write of the rows. */
type RowCalls<Names extends StoreMethod> = {
  readonly [Name in Names]: (...values: Parameters<StoreMethods[Name]>) => Answer<ReturnType<StoreMethods[Name]>>;
};

/** The row of a message; message_row.ts knows its columns. */
export type MessageRow = DatabaseRow;

export type MessageContent = Pick<ClaimedMessage, "head" | "body">;

/** A row, with the content of its message if it is to be stored: a sentence about its damage, which was reported. */
export interface FoundMessage {
  readonly row: MessageRow;
  readonly content: MessageContent | string | null;
}

/** A message that is to be stored. */
export interface NewRow {
  readonly message: NewMessage;
  readonly life: MessageLife;
}

/** A decided change of a message. */
export interface LifeChange {
  /** The row that the decision was made by. Nothing is written if the message has changed since. */
  readonly row: MessageRow;
  readonly next: MessageLife;
  /** The time of the decision, by the clock of the store. */
  readonly nowMs: number;
  /** A try has ended, with this error. */
  readonly tried?: { readonly error: string | null };
  /** Why the message cannot be tried. */
  readonly damage?: string;
  /** The redrive that returns it to the queue. */
  readonly redrive?: number;
}

/** A message that a processor has claimed. */
export interface OwnClaim {
  readonly row: MessageRow;
  /** The decision of an earlier call about the same try, which may have been written. */
  decided: LifeChange | null;
}

export interface RowQuery extends MessageFilter {
  readonly afterSeq: number;
  readonly max: number;
  /** Only dead letters that are not forwarded and that no redrive from this one on has redriven. */
  readonly redrive?: number;
  /** Damaged rows, too. */
  readonly withDamaged?: boolean;
}

/** The rows of messages, and what concerns all of them. */
export interface MessageRows extends
  RowCalls<
    | ("totals" | "startRedrive" | "countRedrivable" | "setPaused" | "isPaused" | "waitingTimes" | "forget")
    | ("canBeTried" | "countDamaged")
  > {
  row(seq: number): Answer<MessageRow | null>;
  /** The oldest first. */
  find(query: RowQuery): Answer<readonly MessageRow[]>;
  /** Whole messages in this order, without those that are gone. */
  read(seqs: readonly number[]): Answer<readonly FoundMessage[]>;
  /** A row that is not can only be removed. */
  isIntact(row: MessageRow): boolean;
  /** Number and size of the messages that count towards the limits. */
  used(): Answer<StateTotals>;
  /** Stores all of them or none. Returns the number of the first one; the others follow it. */
  insert(rows: readonly NewRow[], nowMs: number): Answer<number>;
  /** Returns how many of the messages have their change now. */
  write(changes: readonly LifeChange[]): Answer<number>;
  /** Removes a damaged message. */
  remove(seq: number): Answer<void>;
}

/** The rows of processors, and their claims. */
export interface ProcessorRows extends RowCalls<"register" | "renew"> {
  /**
   * Claims what is due. `ageMs`: the time from that of the order to the call. Null: the lease was given up.
   * `nextMs`: the next due time after now; null: none is known.
   */
  take(
    order: ClaimOrder,
    ageMs: number,
  ): Answer<{ readonly found: readonly FoundMessage[]; readonly nextMs: number | null } | null>;
  /** Writes what `take` has found damaged. A message whose change is not written is found damaged again. */
  writeDamaged(changes: readonly LifeChange[]): Answer<unknown>;
  /** Messages in flight of this processor whose claim had no answer. None of its claims can take more of them. */
  unknown(owner: number): Answer<readonly MessageRow[]>;
  /** Null: the message has another owner now. */
  claimed(seq: number, owner: number): OwnClaim | null;
  /** Writes what was decided about a claim. False: the message has another owner now. */
  writeEnd(claim: OwnClaim): Answer<boolean>;
  /** Processors whose lease has ended. They can claim nothing more. */
  overdue(options: Parameters<StoreMethods["reclaim"]>[0]): Answer<readonly number[]>;
  /** Some of the messages that these processors have in flight; an empty list: they have none. */
  inFlight(owners: readonly number[]): Answer<readonly MessageRow[]>;
  removeOverdue(owners: readonly number[]): Answer<void>;
  /** Removes a processor that has nothing in flight. */
  remove(owner: number): Answer<void>;
}

/** The record of dead letters that are to be forwarded: which are pending, which are being sent, and their errors. */
export interface LetterRows extends
  RowCalls<
    | ("deadLetterBacklog" | "keptDeadLetters" | "markForwarding" | "markForwarded" | "clearForwardDelays")
    | "recordForwardFailure"
  > {
  /**
   * Pending dead letters that this process may send now. Those that are being sent come first. Those that failed come
   * last, and not during their delay: otherwise one that fails repeatedly could keep others back.
   */
  pending(max: number, nowMs: number): Answer<readonly MessageRow[]>;
  /** The last error of a pending dead letter, or else of the sink. */
  errorOf(row: MessageRow): string | null;
}

/** The last message of each topic that was stored. */
export interface IngestRows extends RowCalls<"lastIngestedId" | "forgetIngested"> {
  /** Stores messages of a topic after the message `last`. False: another one is the last now; nothing was stored. */
  add(topic: string, last: number, messages: readonly IngestedRow[], nowMs: number): Answer<boolean>;
}

export interface IngestedRow extends NewRow, Pick<IngestMessage, "id"> {}

/** All rows of a store, and what it is stored on. */
export interface RetryRows extends RowCalls<"reserveLog" | "disk" | "damageCount"> {
  readonly messages: MessageRows;
  readonly processors: ProcessorRows;
  readonly letters: LetterRows;
  readonly topics: IngestRows;
  /** The random name that starts the ids of the messages. */
  readonly key: string;
  /** The subject of a sentence: "The message store in /srv". */
  readonly what: string;
  readonly bodyBytesMax: number;
  /** The clock of the store. `callerMs`: the wall clock of the caller. */
  nowMs(callerMs: number): number;
  /** A time of the store on the wall clock of this process. */
  toLocalMs(atMs: number): number;
  /** Why nothing can be written. */
  whyNotWritable(): Answer<string | null>;
  /** Why this number of bytes more has no room on the disk. */
  whyNoRoom(bytes: number): string | null;
}

/**
 * Calls of a message store, the same in a folder and in a database: their arguments and results, and how commands and
 * services make them. Times are milliseconds of the caller's wall clock; a store in a database has a clock of its
 * own.
 */
import type { BatonError } from "../../base/errors.ts";
import type { MessageChange, MessageLife, MessageState, TryEnd } from "./message_life.ts";
import type { StoreRules } from "./store_rules.ts";
import type { ClaimedMessage, NewMessage, StateTotals, StoredMessage } from "./stored_message.ts";

export interface AcceptedMessage {
  readonly id: string;
  readonly life: MessageLife;
}

export interface IngestMessage {
  /** Increases from message to message of a topic. */
  readonly id: number;
  readonly body: Uint8Array;
}

/**
 * `none`: by due time. `key`: messages with the same key one after the other. `fifo`: all messages one after the other.
 */
export type RetryOrder = "none" | "key" | "fifo";

export interface DueOptions {
  readonly max: number;
  readonly order: RetryOrder;
  readonly nowMs: number;
}

export interface ClaimOrder extends DueOptions {
  readonly owner: number;
}

export interface Claim {
  readonly messages: readonly ClaimedMessage[];
  /** The next due time after now; null: none is known. */
  readonly nextMs: number | null;
}

export interface TryReport {
  readonly seq: number;
  readonly fence: number;
  readonly owner: number;
  /** Null: the try was not started. */
  readonly end: TryEnd | null;
  readonly error: string | null;
  readonly nowMs: number;
}

/** All of them must match. */
export interface MessageConditions {
  readonly key?: string;
  readonly reason?: string;
  /** A part of the last error. */
  readonly error?: string;
}

export interface MessageFilter extends MessageConditions {
  readonly states: readonly MessageState[];
}

/** The reason why a message was not changed. */
export type ChangeRefusal = "unknown" | MessageState | "forwarded";

/** The end of a sentence. `store`: the name of the store. */
export function refusalReason(refusal: ChangeRefusal, store: string): string {
  if (refusal === "unknown") return `there is no such message in "${store}"`;
  return refusal === "forwarded" ? "it was delivered to --dead-letter" : `it is ${refusal.replace("_", " ")}`;
}

export interface PendingDeadLetter extends ClaimedMessage {
  /** The offset in the sink of a dead letter that is being sent. */
  readonly forwardOffset: number | null;
}

/** Bytes; `freeBytes` null: the store is on another machine. */
export interface StoreDisk {
  readonly usedBytes: number;
  readonly freeBytes: number | null;
}

/** The end of a processor's lease is a time on the boot clock of its machine. */
interface ReclaimOptions {
  readonly boot: string;
  readonly bootMs: number;
  readonly graceMs: number;
  readonly nowMs: number;
}

/** Each call is one durable transaction. */
export type StoreMethods = {
  /** Stores all or none of the messages and returns their ids. Throws STORE_FULL, BAD_DATA. */
  accept(messages: readonly NewMessage[], nowMs: number): AcceptedMessage[];
  /**
   * Stores the messages of a topic that are new, all or none of them. Returns their number. Throws STORE_FULL,
   * BAD_DATA.
   */
  ingest(topic: string, messages: readonly IngestMessage[], nowMs: number): number;
  /** The last message of the topic that was stored; -1: none. */
  lastIngestedId(topic: string): number;
  /** Forgets the last message, if it is this one: it belongs to an earlier topic of this name. */
  forgetIngested(topic: string, id: number): void;

  /** Registers a process that will try messages and returns its number. */
  register(boot: string, endMs: number, pid: number, nowMs: number): number;
  /** Extends the lease of a process. False: the lease was given up, and its messages have other owners. */
  renew(owner: number, endMs: number): boolean;
  /** Removes a process that has nothing in flight. */
  leave(owner: number): void;
  /** Takes back messages of processes whose lease has ended: they have crashed. Returns their number. */
  reclaim(options: ReclaimOptions): number;
  /** Claims due messages, each under a new fencing number. Throws LOCK_LOST if the lease was given up. */
  claim(order: ClaimOrder): Claim;
  /** Records the result of a try. Null: the message has another owner now, and nothing was changed. */
  finish(report: TryReport): MessageLife | null;

  totals(): Record<MessageState, StateTotals>;
  /** The reason why no message would be accepted now; null: a message of moderate size would be. */
  fullReason(): string | null;
  /** The random name that starts the ids of the messages. */
  storeName(): string;

  /** Lists messages with a larger number than `afterSeq`, the oldest first. */
  list(filter: MessageFilter, page: { readonly afterSeq: number; readonly max: number }): StoredMessage[];
  /** Head and body are missing if they are no longer stored. Throws BAD_DATA if the content is damaged. */
  show(id: string): (StoredMessage & Partial<Pick<ClaimedMessage, "head" | "body">>) | null;
  /** Null: the change was made. */
  change(id: string, change: MessageChange, nowMs: number): ChangeRefusal | null;
  /**
   * The number of a new redrive. A redrive does not repeat a dead letter that it redrove before and that died again.
   */
  startRedrive(): number;
  /**
   * Redrives up to `max` dead letters that this redrive has not redriven before. Returns their number; fewer than
   * `max`: there are no others.
   */
  redrive(number: number, filter: MessageConditions, max: number, nowMs: number): number;
  /** Counts the dead letters that a redrive would redrive now. */
  countRedrivable(filter: MessageConditions): number;
  /** Purges up to `changesMax` dead letters. Returns their number; 0: none is left. */
  purge(filter: MessageConditions, nowMs: number): number;
  setPaused(isPaused: boolean): void;
  isPaused(): boolean;
  /** The time when the oldest waiting message was accepted, and the next due time; null: no message waits. */
  waitingTimes(): { readonly oldestMs: number | null; readonly nextMs: number | null };
  /** Removes up to `changesMax` messages that ended before `beforeMs`. Returns their number. */
  forget(beforeMs: number): number;

  /** Pending dead letters with their bodies; those that are being sent come first. */
  pendingDeadLetters(max: number, nowMs: number): PendingDeadLetter[];
  /** The number of pending dead letters, and the last error; null: none. */
  deadLetterBacklog(): { readonly count: number; readonly error: string | null };
  /** Dead letters that are not to be forwarded: the process that decided them had no sink. */
  keptDeadLetters(): number;
  /** Records that the dead letter is about to be written at this offset of its sink. */
  markForwarding(seq: number, offset: number): void;
  /** Records that the dead letter has left the store. `isMarked`: only one that was marked as being sent. */
  markForwarded(seq: number, nowMs: number, isMarked?: boolean): void;
  /** Ends all delays: a process that starts may reach what an earlier one could not. */
  clearForwardDelays(): void;
  /** Records the error of one dead letter, which is delayed longer each time; `seq` null: of all, without a delay. */
  recordForwardFailure(seq: number | null, error: string, nowMs: number): void;

  /** Reserves space, so that tries can be recorded when the disk has become full. */
  reserveLog(): void;
  disk(): StoreDisk;
  /** Damages that this process has found. */
  damageCount(): number;
  /** Whether any open message can be tried, now or later, by this processor or another one. */
  canBeTried(order: RetryOrder): boolean;
  /** Counts the open messages that are damaged. Reads all open messages. */
  countDamaged(): number;
};

export type StoreMethod = keyof StoreMethods;

/** A store, with or without a thread. */
export interface StoreClient {
  call<Name extends StoreMethod>(
    method: Name,
    ...values: Parameters<StoreMethods[Name]>
  ): Promise<ReturnType<StoreMethods[Name]>>;
}

export interface StoreHooks {
  /** Another process may have written to the store. */
  readonly onChanged?: () => void;
  /** The disk failed. Called once. Every later call is rejected, and the result of calls in progress is unknown. */
  readonly onBroken?: (error: BatonError) => void;
  /** Called once for each damaged row, with a sentence. */
  readonly onDamage?: (sentence: string) => void;
  /** Called once for each sentence about what the store does not promise. */
  readonly onWarning?: (sentence: string) => void;
}

export interface ServiceStoreOptions {
  readonly rules: StoreRules;
  readonly hooks?: StoreHooks;
  /**
   * Duration of the lease on messages that are claimed, in milliseconds; a store in a folder is told the end of each
   * lease instead.
   */
  readonly leaseMs?: number;
}

/** A store of a service. */
export interface ServiceStore extends StoreClient, AsyncDisposable {
  /** Calls the hook `onChanged` if another process has written since the last call. */
  checkForChanges(): void;
  /** Waits for calls in progress, or ends them. */
  close(): Promise<void>;
}

/** A store of a command. `read` changes nothing and does not wait for other processes. */
export interface CommandStore extends StoreClient, AsyncDisposable {
  read: StoreClient["call"];
}

export interface RetryVerifyReport {
  readonly messages: number;
  readonly bytes: number;
  /** Sentences; an empty list means that the store is intact. */
  readonly problems: readonly string[];
}

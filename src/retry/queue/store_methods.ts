/**
 * Defines the calls of a message store, which are the same for a folder and a database: arguments, results, and the
 * objects that make the calls. Times are milliseconds of the caller's wall clock. A store in a database converts them
 * to its own clock.
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
  /** Identifies a message within its topic. Later messages have larger numbers. */
  readonly id: number;
  readonly body: Uint8Array;
}

/**
 * `none` means by due time, `key` means that messages with the same key wait for each other, and `fifo` that all
 * messages do.
 */
export type RetryOrder = "none" | "key" | "fifo";

export interface DueOptions {
  readonly max: number;
  readonly order: RetryOrder;
  readonly nowMs: number;
}

export interface ClaimRequest extends DueOptions {
  readonly owner: number;
}

export interface Claim {
  readonly messages: readonly ClaimedMessage[];
  /** The next time when a message becomes due; null if none is known. */
  readonly nextMs: number | null;
}

export interface TryReport {
  readonly seq: number;
  readonly fence: number;
  readonly owner: number;
  /** The result of the try; null if the try was not started. */
  readonly end: TryEnd | null;
  readonly error: string | null;
  readonly nowMs: number;
  /** The time until the next claim of a message whose try was not started, in milliseconds; without it, 0. */
  readonly pauseMs?: number;
}

/** Selects messages. A message must meet all conditions. */
export interface MessageConditions {
  readonly key?: string;
  readonly reason?: string;
  /** A text that the last error must contain. */
  readonly error?: string;
}

export interface MessageFilter extends MessageConditions {
  readonly states: readonly MessageState[];
}

/** Why a message was not changed. */
export type ChangeRefusal = "unknown" | MessageState | "forwarded";

/** Returns the reason in words, as the end of a sentence. `store` is the name of the store. */
export function refusalReason(refusal: ChangeRefusal, store: string): string {
  if (refusal === "unknown") return `there is no such message in "${store}"`;
  return refusal === "forwarded" ? "it was delivered to --dead-letter" : `it is ${refusal.replace("_", " ")}`;
}

export interface DeadLetterCounts {
  /** The dead letters that a redrive would redrive now. */
  readonly redrivable: number;
  /** The dead letters that were delivered to --dead-letter, and cannot be redriven. */
  readonly forwarded: number;
}

export interface PendingDeadLetter extends ClaimedMessage {
  /** The recorded offset in the sink; null if the dead letter is not being sent. */
  readonly forwardOffset: number | null;
}

/** The sizes of a store and its disk, in bytes. `freeBytes` is null if the store is on another machine. */
export interface StoreDisk {
  readonly usedBytes: number;
  readonly freeBytes: number | null;
}

/** Says which leases have ended. `bootMs` is the present time on the boot clock of the machine, on which leases end. */
interface ReclaimOptions {
  readonly boot: string;
  readonly bootMs: number;
  readonly graceMs: number;
  readonly nowMs: number;
}

export interface DeadLetterBacklog {
  /** The number of dead letters that are to be forwarded. */
  readonly count: number;
  /** The number of dead letters that were forwarded, and are not forgotten yet. */
  readonly forwarded: number;
  /** The last error of forwarding; null if there was none since it last worked. */
  readonly error: string | null;
}

/** The methods of a store. Each call is one durable transaction. */
export type StoreMethods = {
  /** Stores all of the messages or none. Returns their ids. Throws STORE_FULL or BAD_DATA. */
  accept(messages: readonly NewMessage[], nowMs: number): AcceptedMessage[];
  /** Stores the new messages of a topic, all or none. Returns how many were stored. Throws STORE_FULL or BAD_DATA. */
  ingest(topic: string, messages: readonly IngestMessage[], nowMs: number): number;
  /** Returns the id of the last message that was stored from the topic, or -1 if there is none. */
  lastIngestedId(topic: string): number;
  /**
   * Forgets the last message of a topic if it has this id, because it came from an earlier topic with the same name.
   */
  forgetIngested(topic: string, id: number): void;

  /** Registers a process that will try messages. Returns its number. */
  register(boot: string, endMs: number, pid: number, nowMs: number): number;
  /** Extends the lease of a process. Returns false if the lease has ended and the messages have other owners. */
  renew(owner: number, endMs: number): boolean;
  /** Removes a process that has no messages in flight. */
  leave(owner: number): void;
  /**
   * Takes messages back from processes whose lease has ended, for example because they crashed. Returns the number of
   * messages.
   */
  reclaim(options: ReclaimOptions): number;
  /** Returns the number of processes that try messages now, because their lease has not ended. */
  processorCount(boot: string, bootMs: number): number;
  /** Claims due messages, each with a new fencing number. Throws LOCK_LOST if the process has lost its lease. */
  claim(order: ClaimRequest): Claim;
  /** Records the result of a try. Returns null and changes nothing if the message has another owner now. */
  finish(report: TryReport): MessageLife | null;

  totals(): Record<MessageState, StateTotals>;
  /** Returns why no message would be accepted now; null if a message of moderate size would be accepted. */
  fullReason(): string | null;
  /** Returns the random name with which all message ids of this store start. */
  storeName(): string;

  /** Lists the messages with a larger number than `afterSeq`, the oldest first. */
  list(filter: MessageFilter, page: { readonly afterSeq: number; readonly max: number }): StoredMessage[];
  /**
   * Returns one message; null if it is unknown. The result has no head and no body if they are no longer stored. Throws
   * BAD_DATA if the content is damaged.
   */
  show(id: string): (StoredMessage & Partial<Pick<ClaimedMessage, "head" | "body">>) | null;
  /** Changes one message. Returns null if the change was made, or else the reason why not. */
  change(id: string, change: MessageChange, nowMs: number): ChangeRefusal | null;
  /**
   * Starts a redrive and returns its number. The same redrive does not redrive a dead letter twice, even if it dies
   * again.
   */
  startRedrive(): number;
  /**
   * Redrives up to `max` dead letters that this redrive has not redriven before. Returns their number; if it is less
   * than `max`, no others are left.
   */
  redrive(number: number, filter: MessageConditions, max: number, nowMs: number): number;
  countDeadLetters(filter: MessageConditions): DeadLetterCounts;
  /** Purges up to `operatorChangesMax` dead letters. Returns their number; 0 means that none are left. */
  purge(filter: MessageConditions, nowMs: number): number;
  setPaused(isPaused: boolean): void;
  isPaused(): boolean;
  /**
   * Returns when the oldest waiting message was accepted, and the next time when a message becomes due. Both are null
   * if no message waits.
   */
  waitingTimes(): { readonly oldestMs: number | null; readonly nextMs: number | null };
  /** Removes up to `operatorChangesMax` messages that ended before `beforeMs`. Returns their number. */
  forget(beforeMs: number): number;

  /**
   * Returns up to `max` dead letters to forward, with their bodies. Dead letters that are being sent come first. Takes
   * over the open ones, which processes without a sink have left.
   */
  pendingDeadLetters(max: number, nowMs: number): PendingDeadLetter[];
  deadLetterBacklog(): DeadLetterBacklog;
  /**
   * Called just before the dead letter is sent. Records the offset in its sink at which it will be written; null if the
   * sink needs none. Returns false if it must not be sent, because it was purged or redriven since it had this fence.
   */
  markForwarding(seq: number, fence: number, offset: number | null): boolean;
  /**
   * Records that the dead letter has left the store. Returns false and changes nothing if it was purged or redriven
   * since it had this fence.
   */
  markForwarded(seq: number, fence: number, nowMs: number): boolean;
  /**
   * Ends the delays of all dead letters, because a new process may reach a sink that an earlier process could not
   * reach.
   */
  clearForwardDelays(): void;
  /**
   * Records an error of forwarding. If a dead letter is named, its next delay is longer. `seq` is null for an error of
   * the sink, which causes no delay.
   */
  recordForwardFailure(seq: number | null, error: string, nowMs: number): void;

  /** Reserves space on the disk, so that results of tries can be recorded even when the disk is full. */
  reserveLog(): void;
  disk(): StoreDisk;
  /** Returns how many damaged rows this process has found. */
  damageCount(): number;
  /** Returns true if this processor or another one can try any open message, now or later. */
  canBeTried(order: RetryOrder): boolean;
  /** Counts the open messages that are damaged. Reads all open messages to do so. */
  countDamaged(): number;
};

export type StoreMethod = keyof StoreMethods;

/** Sends calls to a store, with or without a thread. */
export interface StoreClient {
  call<Name extends StoreMethod>(
    method: Name,
    ...values: Parameters<StoreMethods[Name]>
  ): Promise<ReturnType<StoreMethods[Name]>>;
}

export interface StoreHooks {
  /** Called when another process may have written to the store. */
  readonly onChanged?: () => void;
  /** Called once when the disk has failed. Later calls are rejected, and calls in progress have an unknown result. */
  readonly onBroken?: (error: BatonError) => void;
  /** Called once for each damaged row, with a sentence for the user. */
  readonly onDamage?: (sentence: string) => void;
  /** Called once for each guarantee that the store cannot give, with a sentence for the user. */
  readonly onWarning?: (sentence: string) => void;
}

export interface ServiceStoreOptions {
  readonly rules: StoreRules;
  readonly hooks?: StoreHooks;
  /**
   * How long a lease on claimed messages lasts, in milliseconds. A store in a folder does not use this, because its
   * callers name the end of each lease.
   */
  readonly leaseMs?: number;
}

/** A store that a service keeps open. */
export interface ServiceStore extends StoreClient, AsyncDisposable {
  /** Calls `onChanged` if another process has written since the last call. */
  checkForChanges(): void;
  /** Ends or awaits the calls in progress, and closes the store. */
  close(): Promise<void>;
}

/** A store that a command opens. `read` changes nothing and does not wait for other processes. */
export interface CommandStore extends StoreClient, AsyncDisposable {
  read: StoreClient["call"];
}

export interface RetryVerifyReport {
  readonly messages: number;
  readonly bytes: number;
  /** Sentences that describe damage. An empty list means that the store is intact. */
  readonly problems: readonly string[];
}

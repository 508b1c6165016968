/**
 * Calls of a message store, the same for a folder and a database: arguments, results, and the objects that make the
 * calls. Times are milliseconds of the caller's wall clock. A store in a database converts them to its own clock.
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
  /** Increases with each message of a topic. */
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
  /** The next due time after now, or null if none is known. */
  readonly nextMs: number | null;
}

export interface TryReport {
  readonly seq: number;
  readonly fence: number;
  readonly owner: number;
  /** Null if the try was not started. */
  readonly end: TryEnd | null;
  readonly error: string | null;
  readonly nowMs: number;
}

/** Conditions that must all be true for a message. */
export interface MessageConditions {
  readonly key?: string;
  readonly reason?: string;
  /** A part of the text of the last error. */
  readonly error?: string;
}

export interface MessageFilter extends MessageConditions {
  readonly states: readonly MessageState[];
}

/** The reason why a message was not changed. */
export type ChangeRefusal = "unknown" | MessageState | "forwarded";

/** Returns the reason as the end of a sentence. `store` is the name of the store. */
export function refusalReason(refusal: ChangeRefusal, store: string): string {
  if (refusal === "unknown") return `there is no such message in "${store}"`;
  return refusal === "forwarded" ? "it was delivered to --dead-letter" : `it is ${refusal.replace("_", " ")}`;
}

export interface PendingDeadLetter extends ClaimedMessage {
  /** The recorded offset in the sink, if the dead letter is being sent. */
  readonly forwardOffset: number | null;
}

/** Sizes in bytes. `freeBytes` is null if the store is on another machine. */
export interface StoreDisk {
  readonly usedBytes: number;
  readonly freeBytes: number | null;
}

/** `bootMs` is the time on the boot clock of the machine, on which leases end. */
interface ReclaimOptions {
  readonly boot: string;
  readonly bootMs: number;
  readonly graceMs: number;
  readonly nowMs: number;
}

/** The calls of a store. Each call is one durable transaction. */
export type StoreMethods = {
  /** Stores all messages or none, and returns their ids. Throws STORE_FULL or BAD_DATA. */
  accept(messages: readonly NewMessage[], nowMs: number): AcceptedMessage[];
  /** Stores the new messages of a topic, all or none. Returns their number. Throws STORE_FULL or BAD_DATA. */
  ingest(topic: string, messages: readonly IngestMessage[], nowMs: number): number;
  /** Returns the last stored message of the topic, or -1 if there is none. */
  lastIngestedId(topic: string): number;
  /** Forgets the last message of a topic if its id is `id`, because it belongs to an earlier topic of this name. */
  forgetIngested(topic: string, id: number): void;

  /** Registers a process that will try messages and returns its number. */
  register(boot: string, endMs: number, pid: number, nowMs: number): number;
  /** Extends the lease of a process. Returns false if the lease was given up and the messages have other owners. */
  renew(owner: number, endMs: number): boolean;
  /** Removes a process that has no messages in flight. */
  leave(owner: number): void;
  /** Takes back messages of processes with an expired lease, as after a crash. Returns the number of messages. */
  reclaim(options: ReclaimOptions): number;
  /** Returns the number of processes whose lease has not ended: those that try messages now. */
  processorCount(boot: string, bootMs: number): number;
  /** Claims due messages, each under a new fencing number. Throws LOCK_LOST if the lease was given up. */
  claim(order: ClaimRequest): Claim;
  /** Records the result of a try. Returns null, without a change, if the message has another owner now. */
  finish(report: TryReport): MessageLife | null;

  totals(): Record<MessageState, StateTotals>;
  /** Returns why no message would be accepted now, or null if a message of moderate size would be accepted. */
  fullReason(): string | null;
  /** Returns the random name at the start of all message ids. */
  storeName(): string;

  /** Lists messages with a larger number than `afterSeq`, the oldest first. */
  list(filter: MessageFilter, page: { readonly afterSeq: number; readonly max: number }): StoredMessage[];
  /**
   * Returns one message, without head and body if they are no longer stored. Throws BAD_DATA if the content is damaged.
   */
  show(id: string): (StoredMessage & Partial<Pick<ClaimedMessage, "head" | "body">>) | null;
  /** Changes one message. Returns null if the change was made, otherwise why not. */
  change(id: string, change: MessageChange, nowMs: number): ChangeRefusal | null;
  /** Returns the number of a new redrive. A redrive redrives each dead letter only once, even if it dies again. */
  startRedrive(): number;
  /**
   * Redrives up to `max` dead letters that this redrive has not redriven before. Returns their number. Fewer than `max`
   * means that no others are left.
   */
  redrive(number: number, filter: MessageConditions, max: number, nowMs: number): number;
  /** Counts the dead letters that a redrive would redrive now. */
  countRedrivable(filter: MessageConditions): number;
  /** Purges up to `operatorChangesMax` dead letters. Returns their number; 0 means that none is left. */
  purge(filter: MessageConditions, nowMs: number): number;
  setPaused(isPaused: boolean): void;
  isPaused(): boolean;
  /** Returns when the oldest waiting message was accepted, and the next due time. Null means that no message waits. */
  waitingTimes(): { readonly oldestMs: number | null; readonly nextMs: number | null };
  /** Removes up to `operatorChangesMax` messages that ended before `beforeMs`. Returns their number. */
  forget(beforeMs: number): number;

  /** Returns pending dead letters with their bodies. Dead letters that are being sent come first. */
  pendingDeadLetters(max: number, nowMs: number): PendingDeadLetter[];
  /** Returns the number of pending dead letters, and the last error or null. */
  deadLetterBacklog(): { readonly count: number; readonly error: string | null };
  /** Counts dead letters that are never forwarded, because the process that decided them had no sink. */
  keptDeadLetters(): number;
  /** Records that the dead letter will be written at this offset of its sink. */
  markForwarding(seq: number, offset: number): void;
  /**
   * Records that the dead letter has left the store. With `isMarked`, changes only a dead letter that was marked as
   * being sent.
   */
  markForwarded(seq: number, nowMs: number, isMarked?: boolean): void;
  /** Ends all delays, because a process that starts may reach a sink that an earlier process could not reach. */
  clearForwardDelays(): void;
  /**
   * Records the error of one dead letter, which is delayed longer each time. `seq` is null for an error of the sink,
   * which causes no delay.
   */
  recordForwardFailure(seq: number | null, error: string, nowMs: number): void;

  /** Reserves space, so that tries can be recorded when the disk has become full. */
  reserveLog(): void;
  disk(): StoreDisk;
  /** Returns how many damages this process has found. */
  damageCount(): number;
  /** Returns whether any open message can be tried, now or later, by this processor or another one. */
  canBeTried(order: RetryOrder): boolean;
  /** Counts the open messages that are damaged. Reads all open messages. */
  countDamaged(): number;
};

export type StoreMethod = keyof StoreMethods;

/** A store that accepts calls, with or without a thread. */
export interface StoreClient {
  call<Name extends StoreMethod>(
    method: Name,
    ...values: Parameters<StoreMethods[Name]>
  ): Promise<ReturnType<StoreMethods[Name]>>;
}

export interface StoreHooks {
  /** Called when another process may have written to the store. */
  readonly onChanged?: () => void;
  /** Called once when the disk has failed. Later calls are rejected, and the result of calls in progress is unknown. */
  readonly onBroken?: (error: BatonError) => void;
  /** Called once for each damaged row, with a sentence. */
  readonly onDamage?: (sentence: string) => void;
  /** Called once for each warning about what the store cannot guarantee. */
  readonly onWarning?: (sentence: string) => void;
}

export interface ServiceStoreOptions {
  readonly rules: StoreRules;
  readonly hooks?: StoreHooks;
  /**
   * Duration in ms of the lease on claimed messages. Not used for a store in a folder, which gets the end of each
   * lease.
   */
  readonly leaseMs?: number;
}

/** A store that a service keeps open. */
export interface ServiceStore extends StoreClient, AsyncDisposable {
  /** Calls the hook `onChanged` if another process has written since the last call. */
  checkForChanges(): void;
  /** Waits for calls in progress or ends them, and closes the store. */
  close(): Promise<void>;
}

/** A store that a command opens. `read` changes nothing and does not wait for other processes. */
export interface CommandStore extends StoreClient, AsyncDisposable {
  read: StoreClient["call"];
}

export interface RetryVerifyReport {
  readonly messages: number;
  readonly bytes: number;
  /** Sentences about damage. An empty list means that the store is intact. */
  readonly problems: readonly string[];
}

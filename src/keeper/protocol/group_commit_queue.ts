/**
 * Group commit: which replies may go out when. What was said of a state that is not on the disk yet waits until it is;
 * everything that happens while one commit runs goes into the next. Owns no disk and no socket.
 */
import { ByteWriter } from "../../wire/bytes.ts";

/** Somebody who is told things: a connection. */
export interface Recipient {
  /** Takes what was staged for it, all at once and in order. */
  deliver(pendingReplyIn: PendingReply): void;
}

export interface PendingReply {
  readonly writer: ByteWriter;
  /** Replies in it. */
  replies: number;
  /** Bytes of the requests that they answer. */
  requestBytes: number;
  /** The connection ends after it. */
  last: boolean;
}

type ReplyBatch = Map<Recipient, PendingReply>;

export interface GroupCommitQueueOptions {
  /** Whether something happened that no commit has taken yet. */
  readonly hasChanges: () => boolean;
  /** Whether some of it has to be on the disk before anybody is told. */
  readonly hasUrgentChanges: () => boolean;
  /** Takes everything that happened so far to the disk. */
  readonly commit: () => Promise<void>;
  /** A commit failed: nothing of it is on the disk, and what was staged will never be delivered. */
  readonly failed: (error: unknown) => void;
}

export class GroupCommitQueue {
  readonly #options: GroupCommitQueueOptions;
  /** Says nothing that is not durable: goes out at the next flush. */
  #ready: ReplyBatch = new Map();
  /** Waits for the commit that runs. */
  #committing: ReplyBatch | null = null;
  /** Waits for the commit after it. */
  #open: ReplyBatch = new Map();
  #stopped = false;

  constructor(options: GroupCommitQueueOptions) {
    this.#options = options;
  }

  /** Whether a commit is running. */
  get committing(): boolean {
    return this.#committing !== null;
  }

  /** Where a reply belongs that says something about the state as it is now. */
  enqueue(recipient: Recipient): PendingReply {
    if (this.#options.hasUrgentChanges()) return pendingReplyIn(this.#open, recipient);
    return pendingReplyIn(this.#committing ?? this.#ready, recipient);
  }

  /** Where a reply belongs that says nothing about the state: at once, unless others to the same recipient wait before it. */
  enqueueUnconditional(recipient: Recipient): PendingReply {
    const waiting = this.#open.get(recipient) ?? this.#committing?.get(recipient);
    return waiting ?? pendingReplyIn(this.#ready, recipient);
  }

  /** To be called at the end of each turn: delivers what may go, and starts a commit if one is due and none is running. */
  flush(): void {
    if (this.#stopped) return;
    deliver(this.#ready);
    if (this.#options.hasUrgentChanges()) this.#commit();
  }

  /** To be called now and then: stores also what nobody waits for. */
  commitRest(): void {
    if (!this.#stopped && this.#options.hasChanges()) this.#commit();
  }

  /** Delivers nothing more. */
  stop(): void {
    this.#stopped = true;
  }

  #commit(): void {
    if (this.#committing !== null) return;
    const committing = this.#committing = this.#open;
    this.#open = new Map();
    this.#options.commit().then(() => {
      if (this.#stopped) return;
      this.#committing = null;
      deliver(committing);
      this.flush();
    }, (error) => {
      if (this.#stopped) return;
      this.#stopped = true;
      this.#options.failed(error);
    });
  }
}

function pendingReplyIn(batch: ReplyBatch, recipient: Recipient): PendingReply {
  let entry = batch.get(recipient);
  if (entry === undefined) {
    batch.set(recipient, entry = { writer: new ByteWriter(), replies: 0, requestBytes: 0, last: false });
  }
  return entry;
}

/**
 * Whoever asked is told first, whoever leaves last: every write wakes its reader, who may run in the keeper's stead. A
 * grant starts a job; what others hear of it only makes them look.
 */
function deliver(batch: ReplyBatch): void {
  if (batch.size === 0) return;
  const entries = [...batch].sort(([, left], [, right]) => urgency(left) - urgency(right));
  batch.clear();
  for (const [recipient, entry] of entries) recipient.deliver(entry);
}

function urgency({ replies, last }: PendingReply): number {
  if (last) return 2;
  return replies > 0 ? 0 : 1;
}

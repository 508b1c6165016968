/**
 * Group commit: decides when the keeper may send its replies. A reply that depends on unstored changes waits for their
 * commit. The next commit stores all changes made during the current one. Uses no disk and no socket.
 */
import { ByteWriter } from "../../../base/wire/bytes.ts";

export interface KeeperReplyRecipient {
  /** Sends everything that was queued for this recipient, in order. */
  deliver(reply: PendingKeeperReply): void;
}

export interface PendingKeeperReply {
  readonly writer: ByteWriter;
  /** Number of replies in `writer`. */
  replies: number;
  /** Bytes of the requests to which these are the replies. */
  requestBytes: number;
  /** Whether the connection ends after this reply. */
  last: boolean;
}

type ReplyBatch = Map<KeeperReplyRecipient, PendingKeeperReply>;

export interface KeeperCommitQueueOptions {
  /** Whether there are changes that no commit contains yet. */
  readonly hasChanges: () => boolean;
  /** Whether there are changes that must be on the disk before any client may see them. */
  readonly hasUrgentChanges: () => boolean;
  readonly commit: () => Promise<void>;
  /** Called when a commit failed. None of its changes are on the disk, and the queued replies are never sent. */
  readonly failed: (error: unknown) => void;
}

export class KeeperCommitQueue {
  readonly #options: KeeperCommitQueueOptions;
  /** Replies that depend on nothing unstored. The next flush sends them. */
  #ready: ReplyBatch = new Map();
  /** Replies that wait for the running commit; null when no commit is running. */
  #committing: ReplyBatch | null = null;
  /** Replies that wait for the next commit. */
  #open: ReplyBatch = new Map();
  #stopped = false;

  constructor(options: KeeperCommitQueueOptions) {
    this.#options = options;
  }

  get committing(): boolean {
    return this.#committing !== null;
  }

  /** Returns the entry for a reply that depends on the current state. */
  enqueue(recipient: KeeperReplyRecipient): PendingKeeperReply {
    if (this.#options.hasUrgentChanges()) return pendingReplyIn(this.#open, recipient);
    return pendingReplyIn(this.#committing ?? this.#ready, recipient);
  }

  /**
   * Returns the entry for a reply that does not depend on the state. That reply waits only for earlier replies to the
   * same recipient.
   */
  enqueueUnconditional(recipient: KeeperReplyRecipient): PendingKeeperReply {
    const waiting = this.#open.get(recipient) ?? this.#committing?.get(recipient);
    return waiting ?? pendingReplyIn(this.#ready, recipient);
  }

  /** Sends the replies that may be sent, and starts a commit if one is due. Call this after each batch of input. */
  flush(): void {
    if (this.#stopped) return;
    deliver(this.#ready);
    if (this.#options.hasUrgentChanges()) this.#commit();
  }

  /** Also stores changes for which no reply waits. Call this from time to time. */
  commitRest(): void {
    if (!this.#stopped && this.#options.hasChanges()) this.#commit();
  }

  /** Sends no further replies. */
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

function pendingReplyIn(batch: ReplyBatch, recipient: KeeperReplyRecipient): PendingKeeperReply {
  let entry = batch.get(recipient);
  if (entry === undefined) {
    batch.set(recipient, entry = { writer: new ByteWriter(), replies: 0, requestBytes: 0, last: false });
  }
  return entry;
}

/**
 * Sends replies to requests first, then events, and closing replies last. Each write wakes a client, which may compete
 * with the keeper for the processor. Replies go first because a reply may start a command, whereas an event only causes
 * reads.
 */
function deliver(batch: ReplyBatch): void {
  if (batch.size === 0) return;
  const entries = [...batch].sort(([, left], [, right]) => deliveryOrder(left) - deliveryOrder(right));
  batch.clear();
  for (const [recipient, entry] of entries) recipient.deliver(entry);
}

function deliveryOrder({ replies, last }: PendingKeeperReply): number {
  if (last) return 2;
  return replies > 0 ? 0 : 1;
}

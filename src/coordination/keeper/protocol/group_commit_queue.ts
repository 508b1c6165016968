/**
 * Group commit: decides when the keeper may send its replies. A reply that depends on unstored changes waits for their
 * commit. While one commit runs, changes are gathered for the next commit. Uses no disk and no socket.
 */
import { ByteWriter } from "../../../base/wire/bytes.ts";

export interface KeeperReplyRecipient {
  /** Sends everything that was queued for this recipient, in order. */
  deliver(reply: PendingKeeperReply): void;
}

export interface PendingKeeperReply {
  readonly writer: ByteWriter;
  /** The number of replies in `writer`. */
  replies: number;
  /** The bytes of the requests that these replies answer. */
  requestBytes: number;
  /** True if the connection ends after this reply. */
  last: boolean;
}

type ReplyBatch = Map<KeeperReplyRecipient, PendingKeeperReply>;

export interface KeeperCommitQueueOptions {
  /** Returns true if there are changes that no commit contains yet. */
  readonly hasChanges: () => boolean;
  /** Returns true if there are changes that must be on the disk before any client may see them. */
  readonly hasUrgentChanges: () => boolean;
  readonly commit: () => Promise<void>;
  /** Called when a commit has failed. None of its changes are on the disk, and the queued replies are never sent. */
  readonly failed: (error: unknown) => void;
}

export class KeeperCommitQueue {
  readonly #options: KeeperCommitQueueOptions;
  /** Replies that depend on no unstored change. The next flush sends them. */
  #ready: ReplyBatch = new Map();
  /** Replies that wait for the running commit; null if no commit is running. */
  #committing: ReplyBatch | null = null;
  /** Replies that wait for the next commit. */
  #open: ReplyBatch = new Map();
  #stopped = false;

  constructor(options: KeeperCommitQueueOptions) {
    this.#options = options;
  }

  /** Returns an entry in the queue for a reply that depends on the current state. */
  enqueue(recipient: KeeperReplyRecipient): PendingKeeperReply {
    if (this.#options.hasUrgentChanges()) return pendingReplyIn(this.#open, recipient);
    return pendingReplyIn(this.#committing ?? this.#ready, recipient);
  }

  /**
   * Returns an entry in the queue for a reply that does not depend on the state. The reply waits only for earlier
   * replies to the same recipient.
   */
  enqueueUnconditional(recipient: KeeperReplyRecipient): PendingKeeperReply {
    const waiting = this.#open.get(recipient) ?? this.#committing?.get(recipient);
    return waiting ?? pendingReplyIn(this.#ready, recipient);
  }

  /** Sends the replies that may be sent, and starts a commit if one is due. Called after each batch of input. */
  flush(): void {
    if (this.#stopped) return;
    deliver(this.#ready);
    if (this.#options.hasUrgentChanges()) this.#commit();
  }

  /** Also stores changes for which no reply waits. Called from time to time. */
  commitRest(): void {
    if (!this.#stopped && this.#options.hasChanges()) this.#commit();
  }

  /** Stops; no reply is sent from now on. */
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
 * with the keeper for the processor. Replies go first because a reply may start a command, while an event only causes
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

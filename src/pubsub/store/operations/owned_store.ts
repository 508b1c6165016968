/**
 * The store as topic ownership sees it; tests use their own. Every change is durable when its promise resolves, is done
 * completely or not at all, and may be repeated. One process owns a store; a process that has ended no longer writes.
 */

/** The content of a topic that a server serves, or has sealed for another server. */
export interface TopicCopy {
  readonly incarnation: string;
  readonly baseOffset: number;
  readonly epoch: number;
  /** The receiving server: the copy is closed for good at this epoch. Null: open. */
  readonly sealedFor: string | null;
}

/** The content of a sealed copy that another server has received completely and has not activated. */
export interface StagedCopy {
  readonly incarnation: string;
  readonly owner: string;
  readonly epoch: number;
}

/** The note of a copy that a store has dropped: its content continues elsewhere from this epoch on. */
export interface DroppedCopy {
  readonly incarnation: string;
  readonly epoch: number;
}

/** The stored copies of one topic. */
export interface TopicCopies {
  /** The active copy, open or sealed. */
  readonly copy: TopicCopy | null;
  /** Received but not yet activated. */
  readonly staged: StagedCopy | null;
  /** The last dropped copy. */
  readonly dropped: DroppedCopy | null;
  /** The content that a shared store has and this server has not opened. */
  readonly unopened?: TopicCopy | null;
}

/** Outgoing content of a topic. */
export interface OutgoingContent {
  /** Null: everything before it must have arrived before more is requested. */
  readonly pieces: AsyncIterable<Uint8Array | null>;
  /**
   * SHA-256 of all pieces in hexadecimal, available after the last one. It does not depend on the sizes of the pieces.
   */
  readonly hash: () => string;
}

/** Incoming content of a topic. */
export interface IncomingContent {
  readonly pieces: AsyncIterable<Uint8Array>;
  /** The sender's hash, available after the last piece. */
  readonly hash: () => string;
}

/** Identifies content on any server. */
export interface ContentName extends StagedCopy {
  readonly baseOffset: number;
}

export interface OwnedStore {
  /**
   * Random id, created with the store and never changed. It distinguishes the stores of two servers with the same id.
   */
  readonly storeId: string;
  /**
   * Grows whenever it is raised: an older copy of the store has a smaller generation. In a shared store each server has
   * one; default: this server.
   */
  generation(server?: string): Promise<number>;
  /**
   * Raises the generation above `above`. Returns null and does nothing if nothing was stored since the last call and
   * `above` is 0.
   */
  raiseGeneration(above?: number): Promise<number | null>;
  /** False even if all of its topics are damaged. */
  isEmpty(): Promise<boolean>;
  /**
   * Topics with an active or staged copy, except damaged ones. Of a shared store: those that a transfer to or from
   * another store has left staged or sealed.
   */
  topics(): Promise<readonly string[]>;
  copiesOf(topic: string): Promise<TopicCopies>;
  /**
   * Creates an open topic without messages; its first message id is baseOffset + 1. Replaces an empty copy of the same
   * incarnation.
   */
  create(topic: string, copy: Omit<TopicCopy, "sealedFor">): Promise<void>;
  /**
   * Once this is durable no request changes the copy, not even an admitted one: the store checks epoch and seal in the
   * transaction of each change. Rejects if the copy is not open at this epoch.
   */
  seal(topic: string, epoch: number, to: string): Promise<void>;
  /**
   * Exports the copy of this epoch: messages, then the data that changes until the seal (cursors, windows, msg-ids).
   * For an open copy the messages are sent first; when almost all are sent, it calls `seal` and then sends the rest.
   * The pieces reject if the copy is replaced, and with errors of `seal`.
   */
  export(topic: string, epoch: number, seal: () => Promise<void>): OutgoingContent;
  /**
   * Stages content that another server has sealed. Replaces content staged at an earlier epoch or of another
   * incarnation. Rejects with BAD_DATA and stages nothing if the hash does not match.
   */
  importStaged(topic: string, content: ContentName, incoming: IncomingContent): Promise<void>;
  /**
   * Opens the server's own sealed copy, or the staged one in place of any other, at this epoch. `incarnation`: that of
   * the topic's node; a shared store opens no other content.
   */
  activate(topic: string, epoch: number, what: "copy" | "staged", incarnation: string): Promise<void>;
  /** Only of a shared store: closes the copy that this server has opened. Its content stays. */
  release(topic: string): Promise<void>;
  /** Only of a shared store: closes all copies. */
  releaseAll(): Promise<void>;
  /**
   * Removes the copy if its epoch is lower, and remembers its incarnation with this epoch. In a shared store also one
   * that this server has not opened, of this incarnation.
   */
  drop(topic: string, epoch: number, incarnation?: string): Promise<void>;
  /** Removes this staged copy. One that was staged since stays: other servers stage in a shared store. */
  discard(topic: string, staged: StagedCopy): Promise<void>;
  /** Keeps the copy out of use, for an operator. */
  setAside(topic: string): Promise<void>;
}

/**
 * The interface through which topic ownership uses a topic store: copies of topics, their handoff, and the store's
 * generation. A change is durable when its promise resolves. A change is done completely or not at all, and may be
 * repeated. One process owns a store.
 */

/** The content of a topic that a server serves, or has sealed for another server. */
export interface TopicCopy {
  readonly incarnation: string;
  readonly baseOffset: number;
  readonly epoch: number;
  /** The server that receives the sealed copy, which stays closed in this epoch. Null if the copy is open. */
  readonly sealedFor: string | null;
}

/** The content of a sealed copy that another server has received completely and has not activated. */
export interface StagedCopy {
  readonly incarnation: string;
  readonly owner: string;
  readonly epoch: number;
}

/** A record of a copy that a store has dropped: the content continues on another server from this epoch on. */
export interface DroppedCopy {
  readonly incarnation: string;
  readonly epoch: number;
}

/** The stored copies of one topic. */
export interface TopicCopies {
  /** The active copy, open or sealed. */
  readonly copy: TopicCopy | null;
  /** The copy that was received and is not yet activated. */
  readonly staged: StagedCopy | null;
  readonly dropped: DroppedCopy | null;
  /** Content in a shared store that this server has not opened. */
  readonly unopened?: TopicCopy | null;
}

/** The content of a topic, as it is sent to another server. */
export interface OutgoingContent {
  /** The pieces in order. After a null, the next piece may be requested only when the earlier pieces have arrived. */
  readonly pieces: AsyncIterable<Uint8Array | null>;
  /** Returns the SHA-256 of the whole content in hexadecimal. Only valid after the last piece. */
  readonly hash: () => string;
}

/** The content of a topic, as it is received from another server. */
export interface IncomingContent {
  readonly pieces: AsyncIterable<Uint8Array>;
  /** Returns the hash that the sender has computed. Only valid after the last piece. */
  readonly hash: () => string;
}

/** Identifies the content of a topic on any server. */
export interface TopicContentId extends StagedCopy {
  readonly baseOffset: number;
}

export interface OwnedStore {
  /**
   * A random ID that is created with the store and never changes. It distinguishes two stores whose servers have the
   * same ID.
   */
  readonly storeId: string;
  /**
   * Returns the generation of the store; in a shared store, the generation of one server (by default this one). The
   * generation only increases, so an older copy of the store has a smaller generation.
   */
  generation(server?: string): Promise<number>;
  /**
   * Raises the generation above `above`. Returns null and does nothing if nothing was stored since the last call and
   * `above` is 0.
   */
  raiseGeneration(above?: number): Promise<number | null>;
  /** Returns true if the store has no topics. Damaged topics count as topics. */
  isEmpty(): Promise<boolean>;
  /**
   * Returns the topics with an active or staged copy, except damaged ones. In a shared store, returns only topics that
   * a transfer to or from another store has left staged or sealed.
   */
  topics(): Promise<readonly string[]>;
  copiesOf(topic: string): Promise<TopicCopies>;
  /**
   * Creates an open topic without messages. Its first message will have the ID baseOffset + 1. Replaces an empty copy
   * of the same incarnation.
   */
  create(topic: string, copy: Omit<TopicCopy, "sealedFor">): Promise<void>;
  /**
   * Ends all changes of the copy, even by requests that were already admitted: the store checks epoch and seal in the
   * transaction of each change. Rejects if the copy is not open at this epoch.
   */
  seal(topic: string, epoch: number, to: string): Promise<void>;
  /**
   * Exports the copy of this epoch. The messages come first, then the data that may change until the seal (cursors,
   * windows, msg-ids). When almost all messages of an open copy are sent, calls `seal`, then sends the rest. Reading a
   * piece rejects if the copy is replaced or `seal` rejects.
   */
  export(topic: string, epoch: number, seal: () => Promise<void>): OutgoingContent;
  /**
   * Stages content that another server has sealed. Replaces content that was staged at an earlier epoch or has another
   * incarnation. Rejects with BAD_DATA and stages nothing if the hash does not match.
   */
  importStaged(topic: string, content: TopicContentId, incoming: IncomingContent): Promise<void>;
  /**
   * Opens the server's own sealed copy, or the staged copy in place of any other copy, at this epoch. `incarnation`
   * comes from the topic's node; a shared store opens only content with this incarnation.
   */
  activate(topic: string, epoch: number, what: "copy" | "staged", incarnation: string): Promise<void>;
  /** Closes the copy of a shared store that this server has opened. Its content stays. */
  release(topic: string): Promise<void>;
  /** Closes all copies of a shared store that this server has opened. */
  releaseAll(): Promise<void>;
  /**
   * Drops the copy if its epoch is below `epoch`, and remembers its incarnation with `epoch`. In a shared store, also
   * drops a copy with `incarnation` that this server has not opened.
   */
  drop(topic: string, epoch: number, incarnation?: string): Promise<void>;
  /**
   * Removes this staged copy. Does not remove a copy that was staged later, because other servers also stage copies in
   * a shared store.
   */
  discard(topic: string, staged: StagedCopy): Promise<void>;
  /** Takes the copy out of use but keeps its data, for an operator. */
  setAside(topic: string): Promise<void>;
}

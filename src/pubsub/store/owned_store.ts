/**
 * What topic ownership asks of a server's store. Narrow on purpose: the store in `../store` implements it, a test may put
 * anything in its place. Whatever changes something is durable when its promise resolves, and is done whole or not at all;
 * done twice it is the same as done once. A process that is no more has stopped writing: one process owns a store.
 */

/** The content that a server serves, or has served. */
export interface TopicCopy {
  readonly incarnation: string;
  readonly baseOffset: number;
  readonly epoch: number;
  /** The server that receives it: closed for good at this epoch. Null: open. */
  readonly sealedFor: string | null;
}

/** The content of a sealed copy, received completely and checked against its hash. */
export interface StagedCopy {
  readonly incarnation: string;
  readonly owner: string;
  readonly epoch: number;
}

/** A dropped copy: its content continues elsewhere from this epoch on. */
export interface DroppedTopic {
  readonly incarnation: string;
  readonly epoch: number;
}

/** What is stored of one topic. */
export interface TopicCopies {
  /** What is answered from, or was. */
  readonly copy: TopicCopy | null;
  /** What was received and not opened yet. */
  readonly staged: StagedCopy | null;
  /** What is remembered of a copy that was dropped. */
  readonly dropped: DroppedTopic | null;
}

/** A topic on its way out. */
export interface OutgoingContent {
  /** Null: what came before it is to have arrived before more is asked for. */
  readonly pieces: AsyncIterable<Uint8Array | null>;
  /** SHA-256 of all of them in hexadecimal, when they have ended: the same for the same content, however it is cut. */
  readonly hash: () => string;
}

/** A topic on its way in. */
export interface IncomingContent {
  readonly pieces: AsyncIterable<Uint8Array>;
  /** What its sender says, when they have ended. */
  readonly hash: () => string;
}

/** What tells one content from another, wherever it is. */
export interface ContentName extends StagedCopy {
  readonly baseOffset: number;
}

export interface OwnedStore {
  /** Names the store for as long as it lives: random, made with it. Two servers of one id are told apart by it. */
  readonly storeId: string;
  /** Grows with what is stored, whenever it is raised: an older copy of the store has a smaller one. */
  generation(): Promise<number>;
  /** Raises it above `above`. Null, and nothing is done, where nothing was stored since the last time and `above` is 0. */
  raiseGeneration(above?: number): Promise<number | null>;
  /** Topics with a copy, or with something staged. */
  topics(): Promise<readonly string[]>;
  copiesOf(topic: string): Promise<TopicCopies>;
  /** An open topic without messages, whose first sequence number is baseOffset + 1. Takes the place of an empty one of the same incarnation. */
  create(topic: string, copy: Omit<TopicCopy, "sealedFor">): Promise<void>;
  /**
   * From the moment this is durable no request changes the copy, those that were let in before included: the store
   * compares epoch and seal in the transaction that stores them. Rejects when the copy is not open at this epoch.
   */
  seal(topic: string, epoch: number, to: string): Promise<void>;
  /**
   * The copy of this epoch: messages, and behind them what changes until it is sealed, cursors and windows. Of an open copy the
   * messages that are there go ahead; when hardly any are left it calls `seal`, and only then gives the rest. The pieces reject
   * when the copy is no longer this one, and with what `seal` rejects with.
   */
  export(topic: string, epoch: number, seal: () => Promise<void>): OutgoingContent;
  /**
   * Stages what another server has sealed, in the place of anything staged at an earlier epoch or of another incarnation.
   * Rejects with BAD_DATA, and stages nothing, when the pieces do not add up to the hash.
   */
  importStaged(topic: string, content: ContentName, incoming: IncomingContent): Promise<void>;
  /** Opens the own sealed copy, or what was staged in the place of any copy, at this epoch. */
  activate(topic: string, epoch: number, what: "copy" | "staged"): Promise<void>;
  /** Removes the copy if it is of an epoch before this one, and remembers its incarnation with this epoch. */
  drop(topic: string, epoch: number): Promise<void>;
  /** Removes what is staged. */
  discard(topic: string): Promise<void>;
  /** Puts the copy where nothing responses from it and an operator finds it. */
  setAside(topic: string): Promise<void>;
}

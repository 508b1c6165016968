/**
 * What topic ownership asks of a server's store. Narrow on purpose: the store in `../store` implements it, a test may put
 * anything in its place. Whatever changes something is durable when its promise resolves, and is done whole or not at all;
 * done twice it is the same as done once. A process that is no more has stopped writing: one process owns a store.
 */
import type { StagedCopy, TopicCopy } from "./topic_decision.ts";
import type { DroppedTopic } from "./transfer_decision.ts";

/** What is stored of one topic. */
export interface StoredTopic {
  /** What is answered from, or was. */
  readonly copy: TopicCopy | null;
  /** What was received and not opened yet. */
  readonly staged: StagedCopy | null;
  /** What is remembered of a copy that was dropped. */
  readonly dropped: DroppedTopic | null;
}

/** A sealed topic on its way: the same content gives the same hash, however it is cut into pieces. */
export interface SealedContent {
  readonly hash: string;
  readonly pieces: AsyncIterable<Uint8Array>;
}

/** What tells one content from another, wherever it is. */
export interface ContentName extends StagedCopy {
  readonly floor: number;
  readonly hash: string;
}

export interface OwnedStore {
  /** Names the store for as long as it lives: random, made with it. Two servers of one id are told apart by it. */
  readonly storeId: string;
  /** Topics with a copy, or with something staged. */
  topics(): Promise<readonly string[]>;
  look(topic: string): Promise<StoredTopic>;
  /** An open topic without messages, whose first sequence number is floor + 1. Takes the place of an empty one of the same birth. */
  create(topic: string, copy: Omit<TopicCopy, "sealedFor">): Promise<void>;
  /**
   * From the moment this is durable no request changes the copy, those that were let in before included: the store
   * compares epoch and seal in the transaction that stores them. Rejects when the copy is not open at this epoch.
   */
  seal(topic: string, epoch: number, to: string): Promise<void>;
  /** The sealed copy's messages, cursors, windows. Rejects when the copy is not sealed at this epoch. */
  export(topic: string, epoch: number): Promise<SealedContent>;
  /**
   * Stages what another server has sealed, in the place of anything staged at an earlier epoch or of another birth.
   * Rejects with BAD_DATA, and stages nothing, when the pieces do not add up to the hash.
   */
  importStaged(topic: string, content: ContentName, pieces: AsyncIterable<Uint8Array>): Promise<void>;
  /** Opens the own sealed copy, or what was staged in the place of any copy, at this epoch. */
  activate(topic: string, epoch: number, what: "copy" | "staged"): Promise<void>;
  /** Removes the copy if it is of an epoch before this one, and remembers its birth with this epoch. */
  drop(topic: string, epoch: number): Promise<void>;
  /** Removes what is staged. */
  discard(topic: string): Promise<void>;
  /** Puts the copy where nothing answers from it and an operator finds it. */
  setAside(topic: string): Promise<void>;
}

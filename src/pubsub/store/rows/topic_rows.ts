/**
 * The interfaces through which the engine uses the rows of a topic store. The engine makes its decisions in memory.
 * Through these interfaces, it reads data that is not in memory, and writes the changes of a commit.
 * `sqlite_topic_rows.ts` implements the interfaces for SQLite, and `postgres_topic_rows.ts` for a database that servers
 * share.
 *
 * A reading method returns its result immediately. It throws DamageError for damaged or missing rows, and
 * DataNotLoadedError for rows that are not in memory. A request that gets DataNotLoadedError has changed nothing, and
 * runs again after `load`. If `load` could not load the rows, the method throws RowsUnavailable.
 */
import type { ValueOrPromise } from "../../../base/support/steps.ts";
import type { ErrorCode } from "../../../base/errors.ts";
import type { ResolvedPutCounter } from "../../wire/topic_records.ts";
import type { DamageError } from "../../../base/storage/damage.ts";
import type { DiskSpace } from "../../../base/storage/disk_space.ts";
import type { DatabaseRow } from "../../../base/storage/sql_row.ts";
import type { DroppedCopy, StagedCopy, TopicCopy } from "../operations/owned_store.ts";
import type { PublisherWindow } from "../decisions/publisher_window.ts";
import { decodeStoredName, type StoredMsgId, type TopicClient } from "./topic_client.ts";
import type { MessageLoss } from "../decisions/topic_losses.ts";

/** A topic in the tables of a store: its copy, the ends of its log, and its numbers. */
export interface TopicRow extends TopicCopy {
  readonly id: number;
  readonly name: string;
  /**
   * The ends of the log: `last` is the last message ID that was assigned, `gone` the last message of the last deleted
   * row, and `stored` the last message in a row.
   */
  readonly last: number;
  readonly gone: number;
  readonly stored: number;
  readonly bytes: number;
  readonly clients: number;
  readonly registration: number;
}

/** Converts the database row of an undamaged topic. */
export function decodeTopicRow(row: DatabaseRow): TopicRow {
  const sealedFor = row["sealed_for"];
  return {
    id: Number(row["id"]),
    name: decodeStoredName(row["name"]),
    incarnation: String(row["incarnation"]),
    baseOffset: Number(row["base_offset"]),
    epoch: Number(row["epoch"]),
    sealedFor: typeof sealedFor === "string" ? sealedFor : null,
    last: Number(row["last"]),
    gone: Number(row["gone"]),
    stored: Number(row["stored"]),
    bytes: Number(row["bytes"]),
    clients: Number(row["clients"]),
    registration: Number(row["registration"]),
  };
}

/** A staged copy with the id of its row. */
export interface StagedTopicRow extends StagedCopy {
  readonly id: number;
}

/** Describes a row of messages in a topic's log, without the messages. */
export interface LogRowHead {
  readonly id: number;
  readonly first: number;
  readonly last: number;
  /** The last message of the row that was stored before this row. */
  readonly previous: number;
  readonly bytes: number;
}

/** A row of a topic's log, with its messages. */
export interface LogRow extends Pick<LogRowHead, "id" | "first" | "last"> {
  readonly records: Uint8Array;
  /** The offset of each message in `records`. Empty if an operator has given up the messages. */
  readonly offsets: readonly number[];
}

export interface NewLogRow {
  readonly head: LogRowHead;
  readonly records: Uint8Array;
}

/** The changes that one commit makes to the rows of one topic. */
export interface TopicChange {
  readonly topicId: number;
  /** The new values of the topic's row; null if they have not changed. */
  row: TopicRow | null;
  readonly added: NewLogRow[];
  readonly deleted: LogRowHead[];
  /** Clients to insert or to overwrite. */
  readonly clients: TopicClient[];
  /** Clients to delete, with all their rows. */
  readonly forgottenClients: number[];
  readonly windows: ChangedWindowRow[];
  /** Windows to delete, with their counters. */
  readonly deletedWindows: { readonly client: number; readonly session: number }[];
  readonly resolved: ResolvedCountersRow[];
  /** The counters to delete. For each window, `upTo` is the last row to delete; all earlier rows are deleted, too. */
  readonly deletedResolved: { readonly client: number; readonly session: number; readonly upTo: number }[];
  readonly keys: MsgIdRow[];
  readonly deletedKeys: { readonly client: number; readonly id: number }[];
}

/** A row of a publisher's window that is new or has a new bound. */
export interface ChangedWindowRow {
  readonly client: number;
  readonly session: number;
  readonly key: string;
  readonly firstUnacked: number;
  /** False if the row replaces a stored row. */
  readonly isNew: boolean;
}

/** A row of the known counters of a publisher's window. */
export interface ResolvedCountersRow {
  readonly id: number;
  readonly client: number;
  readonly session: number;
  readonly firstUnacked: number;
  readonly entries: readonly ResolvedPutCounter[];
}

export interface MsgIdRow {
  readonly id: number;
  readonly client: number;
  readonly key: string;
  readonly message: number;
  readonly fingerprint: number;
}

export function emptyTopicChange(topicId: number): TopicChange {
  return {
    topicId,
    row: null,
    added: [],
    deleted: [],
    clients: [],
    forgottenClients: [],
    windows: [],
    deletedWindows: [],
    resolved: [],
    deletedResolved: [],
    keys: [],
    deletedKeys: [],
  };
}

/** Identifies data that is not in memory, by the reading method that needs the data and the method's arguments. */
export type MissingTopicData =
  | { readonly kind: "findClient"; readonly topicId: number; readonly name: string }
  | { readonly kind: "readWindows" | "readKeys"; readonly client: TopicClient }
  | { readonly kind: "oldestPublishers"; readonly topicId: number; readonly most: number }
  | { readonly kind: "clientsAfter"; readonly topicId: number; readonly name: string | null }
  | {
    readonly kind: "findRowUpTo" | "findRowAfter" | "rowsAfter" | "load";
    readonly topicId: number;
    readonly id: number;
    /**
     * The number of the topic's opening in a shared store: during an earlier opening, the topic may have had other
     * rows.
     */
    readonly opening?: number;
  }
  | { readonly kind: "countBetween"; readonly topicId: number; readonly from: number; readonly to: number }
  | { readonly kind: "firstStored"; readonly topicId: number };

/** The clients of a topic when it is opened. */
export interface LoadedTopicClients {
  readonly subscribers: Map<string, TopicClient>;
  readonly count: number;
  /** The number of clients without a session. */
  readonly plain: number;
  /** A description of damaged or missing clients; null if there are none. */
  readonly damaged: string | null;
  /** Fingerprints of all clients' names. */
  readonly names: Set<number>;
}

export interface OpenedTopic {
  readonly row: TopicRow;
  /** The losses of messages that a shared store has recorded. */
  readonly losses?: readonly MessageLoss[];
  readonly clients: LoadedTopicClients;
  readonly messages: MessageReader;
}

export interface MessageReader {
  /** Returns the last row that starts at message `id` or before it; null if there is none. */
  findRowUpTo(id: number): LogRowHead | null;
  /** Returns the first row that starts after message `id`; null if there is none. */
  findRowAfter(id: number): LogRowHead | null;
  /** Returns the row that starts with message `first`, if that row was read ahead. */
  rowReadAhead(first: number): LogRow | undefined;
  load(row: Pick<LogRowHead, "id">): LogRow;
  /** Counts the stored messages after `from` up to `to`. */
  countBetween(from: number, to: number): number;
  /** Returns the next rows after message `last`, as many as fit into a piece of a transfer. */
  rowsAfter(last: number): ExportedRow[];
  /** Returns the first stored message; null if there is none. */
  firstStored(): number | null;
  /** Keeps a row in the cache until it is deleted, or the cache needs its memory. */
  cache(row: LogRow): void;
  uncache(row: Pick<LogRowHead, "id">): void;
  /** Returns the error for messages from `first` to `last` that were stored but are missing. */
  missingRowError(first: number, last: number): DamageError;
}

/** A row of messages for a transfer. */
export interface ExportedRow extends Pick<LogRowHead, "first" | "last" | "previous"> {
  /** The messages; null if an operator has given them up. */
  readonly records: Uint8Array | null;
}

/** Reads clients that are not in memory. Earlier changes of these clients must be committed before. */
export interface ClientReader {
  findClient(topicId: number, name: string): TopicClient | null;
  /** Returns the error for a stored client that the index does not find. */
  notFoundError(name: string): DamageError;
  readWindows(client: TopicClient): Map<number, PublisherWindow>;
  readKeys(client: TopicClient): StoredMsgId[];
  /** Returns the oldest clients that have a session and never subscribed. Omits damaged clients. */
  oldestPublishers(topicId: number, most: number): TopicClient[];
  /**
   * Returns the next clients of a topic after `name`, in the order of the names' bytes. A null `name` means the first
   * clients.
   */
  clientsAfter(topicId: number, name: string | null): TopicClient[];
}

/** Gives numbers for new rows; no number is used twice. */
export interface NewRowNumbers {
  /** Returns a number for the row that starts with message `first`. */
  message(topicId: number, first: number): number;
  client(topicId: number): number;
  resolved(topicId: number): number;
  key(topicId: number): number;
}

/**
 * A topic whose commit failed, or may have failed. Its memory may differ from its rows, so it must be opened again.
 * - `not_owner`: another server has opened the topic. Nothing was written.
 * - `not_done`: nothing was written. `code` is the code of the database's error.
 * - `unknown`: the change may have been written, or may be written later.
 */
export interface FailedTopicCommit {
  readonly topicId: number;
  readonly outcome: "not_owner" | "not_done" | "unknown";
  readonly code?: ErrorCode;
  /** A sentence without its period. */
  readonly reason: string;
}

/**
 * The copies of topics in a store. A copy is served, staged, arriving from another server, dropped or set aside. Each
 * change is one durable transaction.
 */
export interface TopicCopyRows {
  /** Returns the ids of the served topics. Reports and omits damaged topics. */
  active(): ValueOrPromise<readonly number[]>;
  /**
   * Returns the names of served and staged topics, or of sealed and staged topics in a shared store. Omits damaged
   * topics.
   */
  names(): ValueOrPromise<string[]>;
  /** Returns true if the store has no data, as in a new folder. */
  isEmpty(): ValueOrPromise<boolean>;
  /** Returns the generation of this server; in a shared store, of another `server` if that is given. */
  generation(server?: string): ValueOrPromise<number>;
  setGeneration(generation: number): ValueOrPromise<void>;
  staged(name: string): ValueOrPromise<StagedTopicRow | null>;
  dropped(name: string): ValueOrPromise<DroppedCopy | null>;
  /** Returns the copy that a shared store has under this name; null if there is none, or the store is not shared. */
  unopened(name: string): ValueOrPromise<TopicCopy | null>;
  /** Creates a served topic without messages. Returns its id. */
  create(topic: NewTopicRow): ValueOrPromise<number>;
  /** Records durably that a topic is sealed, and which server receives it. */
  seal(topic: TopicRow): ValueOrPromise<void>;
  /**
   * Opens a topic of a shared store at this epoch. Statements that were sent earlier can then no longer change the
   * topic. Returns the topic's ID; null if the store does not have the topic or is not shared. Throws STALE_TOKEN if
   * another server has opened the topic at a higher epoch, or if `incarnation` is not null and differs.
   */
  takeOver(name: string, incarnation: string | null, epoch: number): ValueOrPromise<number | null>;
  /** Records durably that a topic is open at its epoch. */
  reopen(topic: TopicRow): ValueOrPromise<void>;
  /** Makes a staged topic a served one, in place of the topic `replaced`. */
  activate(staged: number, epoch: number, replaced: number | null): ValueOrPromise<void>;
  /** Drops a served topic, and records that the topic continues on another server from this epoch on. */
  drop(topic: TopicRow, epoch: number): ValueOrPromise<void>;
  /**
   * Drops a topic of a shared store that this server has not opened. Does so only if the topic has this incarnation and
   * a lower epoch.
   */
  dropUnopened(name: string, incarnation: string, epoch: number): ValueOrPromise<void>;
  /** Makes new message IDs start after the base offset, and writes the new positions of `clients`. */
  raiseBaseOffset(id: number, baseOffset: number, clients: readonly TopicClient[]): ValueOrPromise<void>;
  /** Drops a topic that was staged or is arriving. */
  discard(id: number): ValueOrPromise<void>;
  /** Drops all topics that are arriving, except the topics in `except`. */
  discardArriving(except: ReadonlySet<number>): ValueOrPromise<void>;
  setAside(id: number): ValueOrPromise<void>;
  /** Adds a topic that another server sends. The next commit makes the topic durable. Returns the topic's id. */
  addArriving(topic: NewTopicRow, sender: string): ValueOrPromise<number>;
  isArriving(id: number): ValueOrPromise<boolean>;
  /** Deletes an arriving topic's messages below `first`. Returns the number of bytes of these messages. */
  deleteBelow(id: number, first: number): ValueOrPromise<number>;
  /** Stages an arriving topic in place of the staged topic `replaced`, which no server will activate. */
  stage(id: number, ends: ReceivedTopicNumbers, replaced: number | null): ValueOrPromise<void>;
}

/** The values with which a new topic is created. */
export type NewTopicRow = Pick<TopicRow, "name" | "incarnation" | "baseOffset" | "epoch">;
/** The numbers of a topic that was received completely. */
export type ReceivedTopicNumbers = Pick<TopicRow, "last" | "gone" | "stored" | "bytes" | "clients" | "registration">;

/** The rows of a topic store, in SQLite or in a shared database. */
export interface TopicRows {
  /**
   * True if several servers may open a topic. Every response then waits for a commit that began after the request: this
   * commit shows that no other server has opened the topic.
   */
  readonly isShared: boolean;
  readonly clients: ClientReader;
  readonly numbers: NewRowNumbers;
  readonly copies: TopicCopyRows;
  readonly commits: number;
  /** True while rows of dropped topics are left. Each commit deletes some of these rows. */
  readonly hasGarbage: boolean;
  /** Opens a topic to be served. Throws DamageError. */
  open(id: number): ValueOrPromise<OpenedTopic>;
  /** Loads data that a reading method did not have. The data stays in memory at least until the next commit. */
  load(lacks: readonly MissingTopicData[]): ValueOrPromise<void>;
  /** Forgets what `load` has loaded or could not load. An export calls `forgetLoaded` between its pieces. */
  forgetLoaded(): void;
  /**
   * Writes all changes durably. Returns the topics whose changes have failed or may have failed. After an exception the
   * outcome is unknown, except that nothing was written if the disk is full.
   */
  commit(changes: readonly TopicChange[]): ValueOrPromise<readonly FailedTopicCommit[]>;
  /**
   * Gives up the damaged data of a topic. Returns sentences that describe the lost data. The topic must be opened
   * again.
   */
  repair(topic: TopicRow, isDamaged: boolean): ValueOrPromise<string[]>;
  /**
   * Makes the store compare each index with its table again before its next use, because the index may have been
   * damaged since the last comparison.
   */
  checkIndexesAgain(): void;
  space(): DiskSpace;
  /** Shrinks a long log to give space back to the file system. Returns true if the log had such space. */
  freeLog(): boolean;
}

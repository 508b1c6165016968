/**
 * Topic transfer, store side: which topics this store has at which epoch, and their export and import. The coordination
 * service decides who owns a topic (../ownership). The store only guarantees that it never goes back to a lower epoch
 * or behind a seal. Every change is one transaction, durable when the call returns, and may be repeated. `OwnedStore`
 * describes the methods.
 */
import { BatonError } from "../../errors.ts";
import { decodeName, encodeName } from "./topic_client.ts";
import { type ExportStep, exportTopic } from "./export_topic.ts";
import { TopicImport } from "./import_topic.ts";
import type { ContentName, TopicCopies, TopicCopy } from "./owned_store.ts";
import type { StoreEngine } from "./store_engine.ts";
import { droppedTopicsMax, exportsMax, importsMax } from "./topic_store_limits.ts";
import type { StoredTopic } from "./stored_topic.ts";
import type { TopicTable } from "./topic_table.ts";
import type { SqlRow, TopicDatabase } from "./topic_database.ts";
import { tables, topicStates } from "./topic_tables.ts";
import { DamageError, orIfDamaged } from "../../storage/damage.ts";

export class TopicTransfer {
  readonly #database: TopicDatabase;
  readonly #engine: StoreEngine;
  readonly #topics: TopicTable;
  readonly #imports = new Map<number, TopicImport>();
  readonly #exports = new Map<number, { readonly of: StoredTopic; readonly epoch: number; readonly steps: Steps }>();
  #nextTransfer: number;
  /** Number of commits when the generation was last raised. */
  #raisedAtCommit = -1;

  /** `before`: the previous instance, so that transfer ids stay unique. */
  constructor(database: TopicDatabase, engine: StoreEngine, before: TopicTransfer | null = null) {
    this.#database = database;
    this.#engine = engine;
    this.#topics = engine.topics;
    this.#nextTransfer = before === null ? 1 : before.#nextTransfer;
  }

  /** Drops incomplete imports after the store was closed or the disk was full; their senders start again. */
  dropIncomplete(): void {
    // Imports in progress are kept: dropping their rows would lose messages of the topic.
    const underWay = new Set([...this.#imports.values()].map(({ topicId }) => topicId));
    const left = this.#database.all("SELECT id FROM topics WHERE state = ?", topicStates.receiving)
      .map(({ id }) => Number(id))
      .filter((id) => !underWay.has(id));
    if (left.length === 0) return;
    this.#transaction(() => {
      for (const id of left) this.#topics.drop(id);
    });
  }

  generation(): number {
    const row = this.#database.get(`SELECT ${tables.generation.allColumns} FROM generation`);
    if (row === undefined) return 0;
    return Number(this.#database.damage.requireIntactRow(tables.generation, row, "of this store")["generation"]);
  }

  raiseGeneration(above = 0): number | null {
    if (this.#database.commits === this.#raisedAtCommit && above === 0) return null;
    // A caller that names a generation knows the recorded one, so a damaged stored one does not matter.
    const stored = above === 0 ? this.generation() : orIfDamaged(0, () => this.generation());
    const generation = Math.max(stored, above) + 1;
    this.#transaction(() => this.#database.replace(tables.generation, { id: 0, generation }));
    this.#raisedAtCommit = this.#database.commits;
    return generation;
  }

  /**
   * Whether the store has no data, as in a new folder. Damaged rows count, and so do messages without a topic: damage is not
   * an empty folder.
   */
  isEmpty(): boolean {
    const has = (table: string) => this.#database.get(`SELECT 1 FROM ${table} LIMIT 1`) !== undefined;
    return !has("topics") && !has("messages");
  }

  topics(): string[] {
    const rows = this.#database.all(
      "SELECT id FROM topics WHERE state IN (?, ?) ORDER BY name",
      topicStates.active,
      topicStates.staged,
    );
    const whole = rows.map(({ id }) => this.#topics.readRow(Number(id))).filter((row) => row !== null);
    return [...new Set(whole.map(({ name }) => decodeName(name)))];
  }

  copiesOf(name: string): TopicCopies {
    const here = this.#topics.get(name);
    const staged = this.#stagedRow(name);
    const dropped = this.#droppedRow(name);
    return {
      copy: here &&
        { incarnation: here.incarnation, baseOffset: here.baseOffset, epoch: here.epoch, sealedFor: here.sealedFor },
      staged: staged && {
        incarnation: String(staged["incarnation"]),
        owner: String(staged["sender"]),
        epoch: Number(staged["epoch"]),
      },
      dropped: dropped && { incarnation: String(dropped["incarnation"]), epoch: Number(dropped["epoch"]) },
    };
  }

  create(name: string, { incarnation, baseOffset, epoch }: Omit<TopicCopy, "sealedFor">): void {
    const here = this.#topics.get(name);
    if (here?.incarnation === incarnation && here.epoch === epoch && here.sealedFor === null) return;
    if (
      here !== null && (here.incarnation !== incarnation || here.log.lastId !== here.baseOffset || here.epoch >= epoch)
    ) {
      throw staleError(
        `Cannot create topic ${quote(name)} (incarnation ${incarnation}, epoch ${epoch}): this server already stores ${
          describeState(here)
        }`,
      );
    }
    if (here !== null) return this.#reopen(here, epoch);
    this.#transaction(() => {
      this.#topics.load(
        this.#topics.insert({ name, incarnation, baseOffset, epoch, last: baseOffset }, topicStates.active, null),
      );
    });
  }

  /** Ends all operations on the topic in this epoch, including admitted ones. */
  seal(name: string, epoch: number, to: string): void {
    const topic = this.#requireTopic(name, epoch);
    if (topic.sealedFor === to) return;
    if (topic.sealedFor !== null) {
      throw staleError(`Cannot hand off topic ${quote(name)} to ${quote(to)}: ${describeState(topic)}`);
    }
    this.#engine.writePending();
    this.#transaction(() => {
      topic.sealedFor = to;
      this.#topics.writeTopic(topic);
    });
    this.#engine.wakeHeldGets(topic);
  }

  activate(name: string, epoch: number, what: "copy" | "staged"): void {
    const here = this.#topics.get(name);
    if (here?.epoch === epoch && here.sealedFor === null) return;
    if (here !== null && here.epoch >= epoch) {
      throw staleError(`Cannot open topic ${quote(name)} at epoch ${epoch}: ${describeState(here)}`);
    }
    if (what === "copy") {
      if (here === null) throw missingError(name, "");
      return this.#reopen(here, epoch);
    }
    const staged = this.#stagedRow(name);
    if (staged === null) throw missingError(name, " as a staged copy");
    if (Number(staged["epoch"]) >= epoch) {
      throw staleError(`Cannot open topic ${quote(name)} at epoch ${epoch}: it was sent at epoch ${staged["epoch"]}`);
    }
    this.#engine.writePending();
    const id = Number(staged["id"]);
    this.#transaction(() => {
      if (here !== null) this.#topics.drop(here.id);
      this.#topics.changeRow(id, { state: topicStates.active, epoch, sender: null });
    });
    this.#topics.load(id);
    if (here !== null) this.#engine.wakeHeldGets(here);
  }

  drop(name: string, epoch: number): void {
    const here = this.#topics.get(name);
    if (here === null || here.epoch >= epoch) return;
    this.#engine.writePending();
    this.#transaction(() => {
      this.#topics.drop(here.id);
      this.#database.replace(tables.dropped, { name: encodeName(name), incarnation: here.incarnation, epoch });
      this.#database.run(
        "DELETE FROM dropped WHERE rowid <= (SELECT max(rowid) FROM dropped) - ?",
        droppedTopicsMax,
      );
    });
    this.#engine.wakeHeldGets(here);
  }

  /**
   * Starts new message ids after `baseOffset`: ids up to it may have been assigned in the lost time. A subscriber that
   * had all stored messages is placed at the end and has missed nothing.
   */
  raiseBaseOffset(name: string, baseOffset: number): void {
    const topic = this.#topics.get(name);
    if (topic === null) throw missingError(name, "");
    if (topic.baseOffset >= baseOffset) return;
    this.#engine.writePending();
    const { id, log: { lastId: last } } = topic;
    this.#transaction(() => {
      // One id more, so that the topic does not look like one without messages. Registration numbers assigned in the
      // lost time are not valid either.
      this.#topics.changeRow(id, { base_offset: baseOffset, last: baseOffset + 1, registration: baseOffset });
      this.#topics.clients.moveSubscribers(topic.subscribers.values(), { from: last, to: baseOffset + 1 });
    });
    this.#topics.load(id);
  }

  discard(name: string): void {
    const staged = this.#stagedRow(name);
    if (staged !== null) this.#transaction(() => this.#topics.drop(Number(staged["id"])));
  }

  setAside(name: string): void {
    const here = this.#topics.get(name);
    if (here === null) return;
    this.#engine.writePending();
    this.#transaction(() => this.#topics.setAside(here.id));
    this.#engine.wakeHeldGets(here);
  }

  /** Starts an export and returns its id. Its end can be read only after the seal. */
  exportBegin(name: string, epoch: number): number {
    const topic = this.#requireTopic(name, epoch);
    if (topic.damagedClients !== null) {
      throw new BatonError("BAD_DATA", `Topic ${quote(name)} cannot be sent: ${topic.damagedClients}`);
    }
    if (this.#exports.size >= exportsMax) throw busyError("export", name, exportsMax);
    const { id, incarnation, baseOffset, log } = topic;
    const steps = exportTopic(this.#database, this.#topics.clients, {
      id,
      isSealed: () => topic.sealedFor !== null,
      record: () => ({ name, incarnation, baseOffset, epoch, last: log.lastId, registration: topic.registration }),
      logEnds: () => log,
    });
    this.#exports.set(this.#nextTransfer, { of: topic, epoch, steps });
    return this.#nextTransfer++;
  }

  /** Returns the next piece, or the hash of all pieces. The content is always that of the given epoch. */
  exportNext(transfer: number): ExportStep & { hash: string | null } {
    const found = this.#exports.get(transfer);
    if (found === undefined) throw new BatonError("NOT_HELD", `Export ${transfer} has ended`);
    const { of, epoch, steps } = found;
    if (this.#requireTopic(of.name, epoch) !== of) throw staleError(`Topic ${quote(of.name)} was replaced`);
    const next = this.#refuseDamaged(of.name, () => steps.next());
    if (next.done !== true) return { ...next.value, hash: null };
    this.#exports.delete(transfer);
    return { piece: null, isCaughtUp: false, hash: next.value };
  }

  /** A damaged topic is not handed off: its owner continues to serve the undamaged part. */
  #refuseDamaged<T>(topic: string, read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof DamageError)) throw error;
      throw new BatonError("BAD_DATA", `Topic ${quote(topic)} cannot be sent: ${error.message}`);
    }
  }

  exportEnd(transfer: number): void {
    this.#exports.delete(transfer);
  }

  /** Starts an import of content that another server has sealed; returns its id. */
  importBegin(name: string, content: ContentName): number {
    const staged = this.#stagedRow(name);
    if (staged?.["incarnation"] === content.incarnation && Number(staged["epoch"]) > content.epoch) {
      throw staleError(
        `Cannot receive topic ${quote(name)} of epoch ${content.epoch}: ${staged["epoch"]} is already staged`,
      );
    }
    if (this.#imports.size >= importsMax) throw busyError("import", name, importsMax);
    this.#imports.set(this.#nextTransfer, new TopicImport(this.#database, this.#topics, name, content));
    return this.#nextTransfer++;
  }

  /** Imports a piece. Throws BAD_DATA or PROTOCOL for invalid data, which ends the import. */
  importPiece(transfer: number, piece: Uint8Array): void {
    this.#changeImport(transfer, (received) => received.importPiece(piece));
  }

  /** Called after the last piece: checks the SHA-256 and stages the topic, replacing any staged copy. */
  importDone(transfer: number, hash: string): void {
    this.#changeImport(transfer, (received) => {
      const old = this.#stagedRow(received.name);
      received.checkComplete(hash);
      if (old !== null) this.#topics.drop(Number(old["id"]));
      received.stageTopic();
    });
    this.#imports.delete(transfer);
  }

  importEnd(transfer: number): void {
    const received = this.#imports.get(transfer);
    this.#imports.delete(transfer);
    if (received !== undefined) this.#transaction(() => received.dropRows());
  }

  #reopen(topic: StoredTopic, epoch: number): void {
    this.#transaction(() => {
      topic.epoch = epoch;
      topic.sealedFor = null;
      this.#topics.writeTopic(topic);
    });
    this.#engine.wakeHeldGets(topic);
  }

  #changeImport(transfer: number, work: (received: TopicImport) => void): void {
    const received = this.#imports.get(transfer);
    if (received === undefined) throw new BatonError("NOT_HELD", `Import ${transfer} has ended`);
    try {
      this.#transaction(() => work(received));
    } catch (error) {
      // Invalid data is the sender's fault: the imported rows are removed, and nothing else changes.
      if (error instanceof BatonError) this.importEnd(transfer);
      throw error;
    }
  }

  /** A damaged staged copy counts as missing: it never answered a request, and its sender still has it. */
  #stagedRow(name: string): SqlRow | null {
    return this.#topics.findRow(name, topicStates.staged);
  }

  #droppedRow(name: string): SqlRow | null {
    const row = this.#database.get(`SELECT ${tables.dropped.allColumns} FROM dropped WHERE name = ?`, encodeName(name));
    if (row === undefined) return null;
    // A damaged row is treated as forgotten: the topic's node decides.
    return orIfDamaged(null, () => this.#database.damage.requireIntactRow(tables.dropped, row, "of this store"));
  }

  #requireTopic(name: string, epoch: number): StoredTopic {
    const topic = this.#topics.get(name);
    if (topic === null) throw missingError(name, "");
    if (topic.epoch === epoch) return topic;
    throw staleError(`Topic ${quote(name)} was requested at epoch ${epoch}: ${describeState(topic)} is stored`);
  }

  /** A BatonError is thrown before any change, or its catcher undoes the change: so the transaction is committed. */
  #transaction(work: () => void): void {
    this.#database.begin();
    try {
      work();
    } catch (error) {
      if (error instanceof BatonError) this.#database.commit();
      throw error;
    }
    this.#database.commit();
  }
}

type Steps = Generator<ExportStep, string, void>;

const quote = (name: string) => JSON.stringify(name);
const describeState = ({ incarnation, epoch, sealedFor }: StoredTopic) =>
  `${incarnation} in epoch ${epoch}${sealedFor === null ? "" : `, sealed for ${quote(sealedFor)},`}`;
const staleError = (message: string) => new BatonError("STALE_TOKEN", message);
const missingError = (name: string, where: string) =>
  new BatonError("NOT_HELD", `Topic ${quote(name)} is not on this server${where}`);
const busyError = (what: string, name: string, most: number) =>
  new BatonError(
    "LOCK_BUSY",
    `Cannot ${what} topic ${quote(name)}: ${most} others are in progress, which is the limit`,
  );

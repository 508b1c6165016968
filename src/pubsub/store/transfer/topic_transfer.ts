/**
 * The store's part in the handoff of topics: knows which topics it has and at which epoch, and exports and imports
 * topics. The coordination service decides which server owns a topic (../ownership). The store guarantees two things: a
 * topic never returns to a lower epoch, and it never opens again after a seal in the same epoch. Every change is one
 * transaction, is durable when the call returns, and may be repeated. `OwnedStore` describes the methods.
 */
import { BatonError, errorMessage } from "../../../base/errors.ts";
import { exportTopic, type TopicExportStep } from "./export_topic.ts";
import { TopicImport } from "./import_topic.ts";
import type { StagedCopy, TopicContentId, TopicCopies, TopicCopy } from "../operations/owned_store.ts";
import type { StoreEngine } from "../engine/store_engine.ts";
import { concurrentExportsMax, concurrentImportsMax } from "../limits/topic_store_limits.ts";
import type { StoredTopic } from "../content/stored_topic.ts";
import type { ServedTopics } from "../engine/topic_table.ts";
import { awaitAnswer, type StepGenerator, type ValueOrPromise } from "../../../base/support/steps.ts";
import type { TopicCopyRows, TopicRows } from "../rows/topic_rows.ts";
import { DamageError } from "../../../base/storage/damage.ts";

export class TopicTransfer {
  readonly #rows: TopicRows;
  readonly #engine: StoreEngine;
  readonly #topics: ServedTopics;
  readonly #copies: TopicCopyRows;
  readonly #imports = new Map<number, TopicImport>();
  readonly #exports = new Map<
    number,
    { readonly of: StoredTopic; readonly epoch: number; readonly steps: StepGenerator<string, TopicExportStep> }
  >();
  #nextTransfer: number;
  #raisedAtCommit = -1;

  /** `before` is the previous instance of this class; the IDs of its transfers are not used again. */
  constructor(rows: TopicRows, engine: StoreEngine, before: TopicTransfer | null = null) {
    this.#rows = rows;
    this.#copies = rows.copies;
    this.#engine = engine;
    this.#topics = engine.topics;
    this.#nextTransfer = before === null ? 1 : before.#nextTransfer;
  }

  /** Drops imports that a restart or a full disk has interrupted. Their senders start again. */
  *dropIncomplete(): StepGenerator {
    // Keeps imports in progress, because dropping their rows would lose messages of the topic.
    const inProgress = new Set([...this.#imports.values()].map(({ topicId }) => topicId));
    yield* awaitAnswer(this.#copies.discardArriving(inProgress));
  }

  generation(server?: string): StepGenerator<number> {
    return awaitAnswer(this.#copies.generation(server));
  }

  *raiseGeneration(above = 0): StepGenerator<number | null> {
    if (this.#rows.commits === this.#raisedAtCommit && above === 0) return null;
    const generation = Math.max(yield* this.#storedGeneration(above > 0), above) + 1;
    yield* awaitAnswer(this.#copies.setGeneration(generation));
    this.#raisedAtCommit = this.#rows.commits;
    return generation;
  }

  /**
   * Returns the stored generation. If `isKnown` is true, a damaged generation counts as 0, because the caller knows the
   * recorded generation.
   */
  *#storedGeneration(isKnown: boolean): StepGenerator<number> {
    try {
      return yield* this.generation();
    } catch (error) {
      if (!isKnown || !(error instanceof DamageError)) throw error;
      return 0;
    }
  }

  isEmpty(): StepGenerator<boolean> {
    return awaitAnswer(this.#copies.isEmpty());
  }

  topics(): StepGenerator<string[]> {
    return awaitAnswer(this.#copies.names());
  }

  *copiesOf(name: string): StepGenerator<TopicCopies> {
    const here = this.#topics.get(name);
    const staged = yield* awaitAnswer(this.#copies.staged(name));
    return {
      copy: here &&
        { incarnation: here.incarnation, baseOffset: here.baseOffset, epoch: here.epoch, sealedFor: here.sealedFor },
      staged: staged && { incarnation: staged.incarnation, owner: staged.owner, epoch: staged.epoch },
      dropped: yield* awaitAnswer(this.#copies.dropped(name)),
      ...(this.#rows.isShared && here === null ? { unopened: yield* awaitAnswer(this.#copies.unopened(name)) } : {}),
    };
  }

  *create(name: string, { incarnation, baseOffset, epoch }: Omit<TopicCopy, "sealedFor">): StepGenerator {
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
    if (here !== null) return yield* this.#reopen(here, epoch);
    this.#topics.requireRoomFor(name);
    this.#engine.disk.beginBatch();
    requireDisk(`create topic ${quote(name)}`, this.#engine.disk.reserveSentence());
    yield* this.#topics.load(yield* awaitAnswer(this.#copies.create({ name, incarnation, baseOffset, epoch })));
  }

  /** Ends all operations on the topic in this epoch, even admitted operations. */
  *seal(name: string, epoch: number, to: string): StepGenerator {
    const topic = this.#requireTopic(name, epoch);
    if (topic.sealedFor === to) return;
    if (topic.sealedFor !== null) {
      throw staleError(`Cannot hand off topic ${quote(name)} to ${quote(to)}: ${describeState(topic)}`);
    }
    yield* this.#engine.writePending();
    topic.sealedFor = to;
    this.#topics.noteCommitted(topic);
    yield* this.#changeRow(topic, this.#copies.seal(topic.row()));
    yield* this.#engine.wakeHeldGets(topic);
  }

  /** Opens a sealed or staged copy. `incarnation` comes from the topic's node; only a shared store compares it. */
  *activate(name: string, epoch: number, what: "copy" | "staged", incarnation: string | null = null): StepGenerator {
    const here = this.#topics.get(name);
    if (here?.epoch === epoch && here.sealedFor === null) return;
    if (here !== null && here.epoch >= epoch) {
      throw staleError(`Cannot open topic ${quote(name)} at epoch ${epoch}: ${describeState(here)}`);
    }
    if (what === "copy") {
      if (this.#rows.isShared) return yield* this.#takeOver(name, epoch, incarnation);
      if (here === null) throw missingError(name, "");
      return yield* this.#reopen(here, epoch);
    }
    const staged = yield* awaitAnswer(this.#copies.staged(name));
    if (staged === null) throw missingError(name, " as a staged copy");
    if (staged.epoch >= epoch) {
      throw staleError(`Cannot open topic ${quote(name)} at epoch ${epoch}: it was sent at epoch ${staged.epoch}`);
    }
    yield* this.#engine.writePending();
    yield* this.#changeRow(here, this.#copies.activate(staged.id, epoch, here?.id ?? null));
    if (here !== null) this.#topics.unload(here);
    yield* this.#topics.load(staged.id);
    if (here !== null) yield* this.#engine.wakeHeldGets(here);
  }

  /** Opens a topic of a shared store at this epoch. A server that had opened the topic before loses it. */
  *#takeOver(name: string, epoch: number, incarnation: string | null): StepGenerator {
    const here = this.#topics.get(name);
    if (here !== null) yield* this.release(name);
    else this.#topics.requireRoomFor(name);
    const id = yield* awaitAnswer(this.#copies.takeOver(name, incarnation, epoch));
    if (id === null) throw missingError(name, "");
    yield* this.#topics.load(id);
    if (here !== null) yield* this.#engine.wakeHeldGets(here);
  }

  /** Drops a topic of a shared store from memory. The rows stay for the server that opens the topic next. */
  *release(name: string): StepGenerator {
    yield* this.#engine.writePending();
    const here = this.#topics.get(name);
    if (here === null) return;
    this.#topics.unload(here);
    yield* this.#engine.wakeHeldGets(here);
  }

  *releaseAll(): StepGenerator {
    for (const { name } of [...this.#topics.all()]) yield* this.release(name);
  }

  /**
   * Drops a copy with a lower epoch. In a shared store, `incarnation` identifies content that this server has not
   * opened.
   */
  *drop(name: string, epoch: number, incarnation: string | null = null): StepGenerator {
    const here = this.#topics.get(name);
    if (here === null && incarnation !== null) {
      return yield* awaitAnswer(this.#copies.dropUnopened(name, incarnation, epoch));
    }
    if (here === null || here.epoch >= epoch) return;
    yield* this.#engine.writePending();
    yield* this.#changeRow(here, this.#copies.drop(here.row(), epoch));
    this.#topics.unload(here);
    yield* this.#engine.wakeHeldGets(here);
  }

  /**
   * Makes new message IDs start after `baseOffset`, because a restore may have lost messages with IDs up to
   * `baseOffset`. Moves each subscriber that had received all stored messages to the end, because it has missed
   * nothing.
   */
  *raiseBaseOffset(name: string, baseOffset: number): StepGenerator {
    const topic = this.#topics.get(name);
    if (topic === null) throw missingError(name, "");
    if (topic.baseOffset >= baseOffset) return;
    yield* this.#engine.writePending();
    const { id, log: { lastId: last } } = topic;
    const atEnd = [...topic.subscribers.values()].filter(({ position }) => (position ?? -1) >= last);
    for (const client of atEnd) client.position = baseOffset + 1;
    yield* this.#changeRow(topic, this.#copies.raiseBaseOffset(id, baseOffset, atEnd));
    yield* this.#topics.load(id);
  }

  *discard(name: string, { incarnation, owner, epoch }: StagedCopy): StepGenerator {
    const staged = yield* awaitAnswer(this.#copies.staged(name));
    const isSame = staged?.incarnation === incarnation && staged.owner === owner && staged.epoch === epoch;
    if (isSame) yield* awaitAnswer(this.#copies.discard(staged.id));
  }

  *setAside(name: string): StepGenerator {
    const here = this.#topics.get(name);
    if (here === null) return;
    yield* this.#engine.writePending();
    yield* this.#changeRow(here, this.#copies.setAside(here.id));
    this.#topics.unload(here);
    yield* this.#engine.wakeHeldGets(here);
  }

  /** Starts an export and returns its id. The export can end only after the seal. */
  exportBegin(name: string, epoch: number): number {
    const topic = this.#requireTopic(name, epoch);
    if (topic.damagedClients !== null) {
      throw new BatonError("BAD_DATA", `Topic ${quote(name)} cannot be sent: ${topic.damagedClients}`);
    }
    if (this.#exports.size >= concurrentExportsMax) throw busyError("export", name, concurrentExportsMax);
    const { id, incarnation, baseOffset, log } = topic;
    const steps = exportTopic(this.#rows, {
      id,
      messages: log.messages,
      isSealed: () => topic.sealedFor !== null,
      record: () => ({ name, incarnation, baseOffset, epoch, last: log.lastId, registration: topic.registration }),
      logEnds: () => log,
    });
    this.#exports.set(this.#nextTransfer, { of: topic, epoch, steps });
    return this.#nextTransfer++;
  }

  /** Returns the next piece; at the end, the hash of all pieces. Throws if the topic's epoch has changed. */
  *exportNext(transfer: number): StepGenerator<TopicExportStep & { hash: string | null }> {
    const found = this.#exports.get(transfer);
    if (found === undefined) throw new BatonError("NOT_HELD", `Export ${transfer} has ended`);
    const { of, epoch, steps } = found;
    if (this.#requireTopic(of.name, epoch) !== of) throw staleError(`Topic ${quote(of.name)} was replaced`);
    this.#rows.forgetLoaded();
    try {
      let next = steps.next();
      while (next.done !== true && next.value instanceof Promise) next = steps.next(yield next.value);
      if (next.done !== true) return { ...next.value as TopicExportStep, hash: null };
      this.#exports.delete(transfer);
      return { piece: null, isCaughtUp: false, hash: next.value };
    } catch (error) {
      // A topic with damage is not handed off, so its owner continues to serve the undamaged part.
      if (!(error instanceof DamageError)) throw error;
      throw new BatonError("BAD_DATA", `Topic ${quote(of.name)} cannot be sent: ${error.message}`);
    }
  }

  exportEnd(transfer: number): void {
    this.#exports.delete(transfer);
  }

  /** Starts an import of content that another server has sealed. Returns the id of the import. */
  *importBegin(name: string, content: TopicContentId): StepGenerator<number> {
    const staged = yield* awaitAnswer(this.#copies.staged(name));
    if (staged?.incarnation === content.incarnation && staged.epoch > content.epoch) {
      throw newerError(name, content, staged.epoch);
    }
    this.#topics.requireRoomFor(name);
    if (this.#imports.size >= concurrentImportsMax) throw busyError("import", name, concurrentImportsMax);
    this.#imports.set(this.#nextTransfer, new TopicImport(this.#rows, name, content));
    return this.#nextTransfer++;
  }

  /**
   * Imports a piece. Throws BAD_DATA or PROTOCOL for invalid data, or STORE_FULL if the piece does not fit. Each of
   * these errors ends the import.
   */
  *importPiece(transfer: number, piece: Uint8Array): StepGenerator {
    const { disk } = this.#engine;
    yield* this.#changeImport(transfer, (received) => {
      disk.beginBatch();
      const bytes = piece.byteLength + received.bufferedBytes;
      requireDisk(`receive topic ${quote(received.name)}`, disk.fullSentence(bytes));
      return received.importPiece(piece);
    });
  }

  /** Ends an import after its last piece. Checks the SHA-256 and stages the topic in place of any staged copy. */
  *importDone(transfer: number, hash: string): StepGenerator {
    yield* this.#changeImport(transfer, (received) => this.#stage(received, hash));
    this.#imports.delete(transfer);
  }

  *#stage(received: TopicImport, hash: string): StepGenerator {
    yield* received.checkComplete(hash);
    const replaced = yield* awaitAnswer(this.#copies.staged(received.name));
    if (this.#rows.isShared && replaced !== null && replaced.incarnation === received.content.incarnation) {
      // Another server of this store may have staged the same content first, and may already own the topic.
      if (replaced.epoch > received.content.epoch) throw newerError(received.name, received.content, replaced.epoch);
      if (replaced.epoch === received.content.epoch) {
        return yield* awaitAnswer(this.#copies.discard(received.topicId));
      }
    }
    yield* awaitAnswer(this.#copies.stage(received.topicId, received.ends, replaced?.id ?? null));
  }

  *importEnd(transfer: number): StepGenerator {
    const received = this.#imports.get(transfer);
    this.#imports.delete(transfer);
    if (received !== undefined && received.topicId > 0) yield* awaitAnswer(this.#copies.discard(received.topicId));
  }

  *#reopen(topic: StoredTopic, epoch: number): StepGenerator {
    topic.epoch = epoch;
    topic.sealedFor = null;
    this.#topics.noteCommitted(topic);
    yield* this.#changeRow(topic, this.#copies.reopen(topic.row()));
    yield* this.#engine.wakeHeldGets(topic);
  }

  /**
   * Waits for a change of a topic's row. If the change fails in a shared store, drops the topic from memory, because
   * memory and row may differ.
   */
  *#changeRow(topic: StoredTopic | null, change: ValueOrPromise<void>): StepGenerator {
    try {
      yield* awaitAnswer(change);
    } catch (error) {
      if (topic !== null && this.#rows.isShared) this.#engine.loseTopic(topic, errorMessage(error));
      throw error;
    }
  }

  *#changeImport(transfer: number, work: (received: TopicImport) => StepGenerator): StepGenerator {
    const received = this.#imports.get(transfer);
    if (received === undefined) throw new BatonError("NOT_HELD", `Import ${transfer} has ended`);
    try {
      yield* work(received);
    } catch (error) {
      // Invalid data is an error of the sender. The imported rows are removed, and nothing else changes.
      if (error instanceof BatonError) yield* this.importEnd(transfer);
      throw error;
    }
  }

  #requireTopic(name: string, epoch: number): StoredTopic {
    const topic = this.#topics.get(name);
    if (topic === null) throw missingError(name, "");
    if (topic.epoch === epoch) return topic;
    throw staleError(`Topic ${quote(name)} was requested at epoch ${epoch}: ${describeState(topic)} is stored`);
  }
}

const quote = (name: string) => JSON.stringify(name);
const describeState = ({ incarnation, epoch, sealedFor }: StoredTopic) =>
  `${incarnation} in epoch ${epoch}${sealedFor === null ? "" : `, sealed for ${quote(sealedFor)},`}`;
const staleError = (message: string) => new BatonError("STALE_TOKEN", message);
const newerError = (name: string, { epoch }: TopicContentId, staged: number) =>
  staleError(`Cannot receive topic ${quote(name)} of epoch ${epoch}: ${staged} is already staged`);
const missingError = (name: string, where: string) =>
  new BatonError("NOT_HELD", `Topic ${quote(name)} is not on this server${where}`);
const busyError = (what: string, name: string, most: number) =>
  new BatonError(
    "LOCK_BUSY",
    `Cannot ${what} topic ${quote(name)}: ${most} others are in progress, which is the limit`,
  );

/** Throws STORE_FULL if `full` is not null; `full` is the reason why the disk is full. */
function requireDisk(what: string, full: string | null): void {
  if (full !== null) throw new BatonError("STORE_FULL", `Cannot ${what}: ${full}`);
}

/**
 * Which topics this store keeps, in which epoch, and their way to and from other servers. Who owns a topic is decided by
 * the coordination service; the store only never goes back: not to a lower epoch, and not behind a seal.
 * Every change is one transaction, durable when the call returns.
 */
import { BatonError } from "../../../errors.ts";
import { nameBytes } from "./client_table.ts";
import { exportTopic } from "./export_topic.ts";
import { TopicImport } from "./import_topic.ts";
import type { StoreEngine } from "./store_engine.ts";
import type { Topic } from "./topic.ts";
import type { TopicTable } from "./topic_table.ts";
import { places, type SqlRow, type TopicDatabase } from "./topic_database.ts";

/** Imports that are under way at once. */
const importsMax = 16;
const exportsMax = 16;

export class TopicCustody {
  readonly #database: TopicDatabase;
  readonly #engine: StoreEngine;
  readonly #topics: TopicTable;
  readonly #imports = new Map<string, TopicImport>();
  readonly #exports = new Map<string, Generator<Uint8Array, string, void>>();

  constructor(database: TopicDatabase, engine: StoreEngine) {
    this.#database = database;
    this.#engine = engine;
    this.#topics = engine.topics;
    // What a server was receiving when it ended is sent again from the beginning.
    this.#transaction(() => {
      for (
        const { id } of this.#database.all("SELECT id FROM topics WHERE place = ? AND hash IS NULL", places.staged)
      ) {
        this.#topics.drop(Number(id));
      }
    });
  }

  /** Serves a topic in `epoch`: a new one, or one that is there in a lower epoch, sealed or not. The same epoch again changes nothing. */
  serve(name: string, epoch: number): void {
    const topic = this.#topics.here(name);
    if (topic === null) {
      this.#transaction(() => {
        this.#topics.load(this.#topics.insert(name, places.here, { epoch, last: 0, bytes: 0 }));
      });
      return;
    }
    if (topic.epoch === epoch && !topic.sealed) return;
    if (epoch <= topic.epoch) {
      const state = topic.sealed ? "is sealed" : "is stored";
      throw stale(`Cannot serve topic ${quoted(name)} in epoch ${epoch}: it ${state} in epoch ${topic.epoch}`);
    }
    this.#transaction(() => {
      topic.epoch = epoch;
      topic.sealed = false;
      this.#topics.write(topic);
    });
    this.#engine.wakeAll(topic);
  }

  /** Nothing more is done at the topic in this epoch. */
  seal(name: string, epoch: number): void {
    const topic = this.#mustHave(name, epoch);
    if (topic.sealed) return;
    this.#engine.settle();
    this.#transaction(() => {
      topic.sealed = true;
      this.#topics.write(topic);
    });
    this.#engine.wakeAll(topic);
  }

  /** The topic is another server's in `epoch`: what is here in a lower one goes. */
  drop(name: string, epoch: number): void {
    const topic = this.#topics.here(name);
    if (topic === null) return;
    if (topic.epoch >= epoch) {
      throw stale(`Cannot drop topic ${quoted(name)} for epoch ${epoch}: it is stored in epoch ${topic.epoch}`);
    }
    this.#engine.settle();
    this.#transaction(() => this.#topics.drop(topic.id));
    this.#exports.delete(name);
    this.#engine.wakeAll(topic);
  }

  /** The next piece of a sealed topic, from the first one on where `restart` says so; the last comes with the hash. */
  exportNext(name: string, epoch: number, restart: boolean): { piece: Uint8Array | null; hash: string | null } {
    const topic = this.#mustHave(name, epoch);
    if (!topic.sealed) throw stale(`Cannot export topic ${quoted(name)}: it is not sealed in epoch ${epoch}`);
    let pieces = restart ? undefined : this.#exports.get(name);
    if (pieces === undefined) {
      if (this.#exports.size >= exportsMax) throw busy("export", name, exportsMax);
      const { id, log } = topic;
      pieces = exportTopic(this.#database, this.#topics.clients, { id, name, epoch, last: log.last });
      this.#exports.set(name, pieces);
    }
    const next = pieces.next();
    if (next.done !== true) return { piece: next.value, hash: null };
    this.#exports.delete(name);
    return { piece: null, hash: next.value };
  }

  /** One piece of a topic that is received; `part` 0 begins anew. */
  importPiece(name: string, part: number, piece: Uint8Array): void {
    let received = this.#imports.get(name);
    if (part === 0) {
      if (received === undefined && this.#imports.size >= importsMax) throw busy("import", name, importsMax);
      this.#transaction(() => {
        received?.abandon();
        const old = this.#staged(name);
        if (old !== undefined) this.#topics.drop(Number(old["id"]));
      });
      received = new TopicImport(this.#database, this.#topics, name);
      this.#imports.set(name, received);
    }
    if (received === undefined) {
      throw new BatonError("BAD_DATA", `Cannot take part ${part} of topic ${quoted(name)}: its first part never came`);
    }
    this.#receive(received, () => received.push(piece));
  }

  /** All pieces were sent. When it returns the topic is durable, and can be taken over. */
  importDone(name: string, hash: string): void {
    if (this.stagedHash(name) === hash) return;
    const received = this.#imports.get(name);
    if (received === undefined) {
      throw new BatonError("BAD_DATA", `Cannot end the import of topic ${quoted(name)}: it has none`);
    }
    this.#receive(received, () => received.finish(hash));
    this.#imports.delete(name);
  }

  /** The hash of what was received of a topic and waits to be taken over. */
  stagedHash(name: string): string | null {
    const hash = this.#staged(name)?.["hash"];
    return typeof hash === "string" ? hash : null;
  }

  /** This server owns the topic in `epoch` now: what was received with this hash takes the place of what is here. */
  takeOver(name: string, epoch: number, hash: string): void {
    const here = this.#topics.here(name);
    if (here !== null && here.epoch >= epoch) {
      if (here.epoch === epoch && !here.sealed) return;
      throw stale(`Cannot take over topic ${quoted(name)} in epoch ${epoch}: it is stored in epoch ${here.epoch}`);
    }
    const staged = this.#staged(name);
    if (staged?.["hash"] !== hash) {
      const what = staged === undefined ? "nothing" : `data with the hash ${staged["hash"]}`;
      throw new BatonError(
        "BAD_DATA",
        `Cannot take over topic ${quoted(name)} with the hash ${hash}: ${what} was received`,
      );
    }
    if (Number(staged["epoch"]) >= epoch) {
      throw stale(`Cannot take over topic ${quoted(name)} in epoch ${epoch}: it was sent in epoch ${staged["epoch"]}`);
    }
    this.#engine.settle();
    const id = Number(staged["id"]);
    this.#transaction(() => {
      if (here !== null) this.#topics.drop(here.id);
      this.#database.run("UPDATE topics SET place = ?, epoch = ?, sealed = 0 WHERE id = ?", places.here, epoch, id);
    });
    this.#topics.load(id);
    if (here !== null) this.#engine.wakeAll(here);
  }

  #receive(received: TopicImport, work: () => void): void {
    try {
      this.#transaction(work);
    } catch (error) {
      this.#imports.delete(received.name);
      // Wrong data is the sender's fault; the store is as it was, but for what was received before.
      if (error instanceof BatonError) this.#transaction(() => received.abandon());
      throw error;
    }
  }

  #staged(name: string): SqlRow | undefined {
    return this.#database.get(
      "SELECT id, epoch, hash FROM topics WHERE name = ? AND place = ?",
      nameBytes(name),
      places.staged,
    );
  }

  #mustHave(name: string, epoch: number): Topic {
    const topic = this.#topics.here(name);
    if (topic === null) throw new BatonError("NOT_HELD", `Topic ${quoted(name)} is not on this server`);
    if (topic.epoch === epoch) return topic;
    throw stale(`Topic ${quoted(name)} is stored in epoch ${topic.epoch}, not in ${epoch}`);
  }

  /** A refusal inside leaves what was done in it, so that rows and memory agree: whoever refuses then undoes it. */
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

const quoted = (name: string) => JSON.stringify(name);
const stale = (message: string) => new BatonError("STALE_TOKEN", message);
const busy = (what: string, name: string, most: number) =>
  new BatonError("LOCK_BUSY", `Cannot ${what} topic ${quoted(name)}: ${most} others are under way, which is the limit`);

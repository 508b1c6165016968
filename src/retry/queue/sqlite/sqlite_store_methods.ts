/** All calls to an open store, each inside a transaction; the same with and without a thread. */
import { canBeTried, countDamaged } from "./due_messages.ts";
import type { IngestMessage, StoreMethods } from "../store_methods.ts";
import { DeadLetterIndex } from "./dead_letter_index.ts";
import type { RetryDatabase } from "./retry_database.ts";
import { RetryEngine } from "./retry_engine.ts";
import type { StoreRules } from "../store_rules.ts";
import { RetryAdmin } from "./retry_admin.ts";
import { BatonError } from "../../../base/errors.ts";
import { tables } from "./retry_tables.ts";

/** Methods of the engine, the operator commands and the indexes, by name. */
export function storeMethods(database: RetryDatabase, rules: StoreRules, random?: () => number): StoreMethods {
  const engine = new RetryEngine(database, rules, random);
  const operator = new RetryAdmin(database, engine);
  const letters = new DeadLetterIndex(database, engine);
  const topics = new IngestOffsets(database, engine);
  return {
    accept: engine.accept.bind(engine),
    ingest: topics.ingest.bind(topics),
    lastIngestedId: topics.lastIngestedId.bind(topics),
    forgetIngested: topics.forgetIngested.bind(topics),
    register: engine.registerProcessor.bind(engine),
    renew: engine.renewProcessor.bind(engine),
    leave: engine.removeProcessor.bind(engine),
    reclaim: engine.reclaim.bind(engine),
    claim: engine.claim.bind(engine),
    finish: engine.finish.bind(engine),
    totals: () => engine.totals.all(),
    fullReason: engine.capacity.fullReason.bind(engine.capacity),
    markForwarded: engine.markForwarded.bind(engine),
    storeName: () => engine.storeName,
    list: operator.list.bind(operator),
    show: operator.show.bind(operator),
    change: operator.change.bind(operator),
    startRedrive: operator.beginRedrive.bind(operator),
    redrive: operator.redrive.bind(operator),
    countRedrivable: operator.countRedrivable.bind(operator),
    purge: operator.purge.bind(operator),
    setPaused: operator.setPaused.bind(operator),
    isPaused: operator.isPaused.bind(operator),
    waitingTimes: operator.waitingTimes.bind(operator),
    forget: operator.forgetEnded.bind(operator),
    pendingDeadLetters: letters.pendingDeadLetters.bind(letters),
    deadLetterBacklog: letters.deadLetterBacklog.bind(letters),
    keptDeadLetters: letters.keptDeadLetters.bind(letters),
    markForwarding: letters.markForwarding.bind(letters),
    clearForwardDelays: letters.clearForwardDelays.bind(letters),
    recordForwardFailure: letters.recordForwardFailure.bind(letters),
    reserveLog: () => database.reserveLog(),
    disk: () => database.diskSpace(),
    damageCount: () => database.damage.count,
    canBeTried: (order) => canBeTried(database, order),
    countDamaged: () => countDamaged(database),
  };
}

class IngestOffsets {
  readonly #database: RetryDatabase;
  readonly #engine: RetryEngine;

  constructor(database: RetryDatabase, engine: RetryEngine) {
    this.#database = database;
    this.#engine = engine;
  }

  /**
   * Stores the messages that are new, all or none of them, in the order of their ids. Returns their number. Throws
   * STORE_FULL, BAD_DATA.
   */
  ingest(topic: string, messages: readonly IngestMessage[], nowMs: number): number {
    const last = this.lastIngestedId(topic);
    const fresh = messages.filter(({ id }) => id > last);
    const newest = fresh.at(-1);
    if (newest === undefined) return 0;
    const head = { kind: "command", argv: null, cwd: null } as const;
    this.#engine.accept(fresh.map(({ body }) => ({ head, body, key: null, tried: null })), nowMs);
    this.#database.replace(tables.ingest_offsets, { topic, last_id: newest.id });
    return fresh.length;
  }

  /** Forgets the last message, if it is this one: it belongs to an earlier topic of this name. */
  forgetIngested(topic: string, id: number): void {
    if (this.lastIngestedId(topic) === id) this.#database.run("DELETE FROM ingest_offsets WHERE topic = ?", topic);
  }

  /** The last message of the topic that was stored; -1: none. */
  lastIngestedId(topic: string): number {
    const row = this.#database.get(
      `SELECT ${tables.ingest_offsets.allColumns} FROM ingest_offsets WHERE topic = ?`,
      topic,
    );
    if (row === undefined) return -1;
    if (this.#database.intactOrNull(tables.ingest_offsets, row) !== null) return Number(row["last_id"]);
    const what = `the ingest offset of topic ${JSON.stringify(topic)}`;
    throw new BatonError("BAD_DATA", `The message store in ${this.#database.folder} is damaged: ${what}`);
  }
}

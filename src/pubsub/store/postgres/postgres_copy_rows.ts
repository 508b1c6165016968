/**
 * The served, staged, arriving and dropped copies of topics in a shared database. Each change is one statement. A
 * change of an open topic compares the epoch and revision of the topic's row. After a failed change the topic must be
 * opened again.
 */
import { crc32 } from "node:zlib";
import { BatonError } from "../../../base/errors.ts";
import type { PostgresRow, SqlParameter, SqlStatement } from "../../../base/postgres/primary_connection.ts";
import {
  changeAllRowsSql,
  countRowsSql,
  missingRowsHint,
  requireChangedRowsSql,
} from "../../../base/postgres/required_rows.ts";
import { StatementError } from "../../../base/postgres/statement_error.ts";
import { messageRecordOffsets } from "../../wire/topic_records.ts";
import type { DroppedCopy, TopicCopy } from "../operations/owned_store.ts";
import { decodeStoredName, type TopicClient } from "../rows/topic_client.ts";
import type { NewTopicRow, ReceivedTopicNumbers, StagedTopicRow, TopicCopyRows, TopicRow } from "../rows/topic_rows.ts";
import { deletedRowsPerCommitMax } from "../limits/topic_store_limits.ts";
import { topicLossDaysKept } from "../decisions/topic_losses.ts";
import { messageRowChecksum, type OpenTopicFence, type TopicRowFence } from "./batch_statement.ts";
import { idsSkippedAfterLossSql, isTopicLossRecordedSql, recordTopicLossSql } from "./topic_loss_sql.ts";
import {
  currentTimelineSql,
  isCommitSynchronousSql,
  postgresTopicStates,
  setTimelineColumnsSql,
} from "./postgres_tables.ts";
import { type RunTopicStatement, storedNameBuffer } from "./postgres_row_loader.ts";

const { served, staged, dropped, arriving, setAside } = postgresTopicStates;
const topic = "SCHEMA.topic";
const fenced = "id = $1::bigint AND epoch = $2::bigint AND revision = $3::bigint";
const raised = `revision = revision + 1, ${setTimelineColumnsSql}`;
const dropping = `${raised}, place = ${dropped}`;

/** Joins the subscribers `$5` of the topic `t` with their new positions `$6`. */
const newPositions = "t, unnest($5::bigint[], $6::bigint[]) p(id, position) WHERE c.topic = t.id AND c.id = p.id";
const isBelow = "m.topic = t.id AND m.first < $4::bigint";
/** The condition that the part `d` has recorded each dropped topic. */
const isDropNoted = requireChangedRowsSql("topic_dropped", countRowsSql("d"), countRowsSql("t"));

/** Statements that change a topic that this server has opened. `$1` to `$3` are the topic's ID, epoch and revision. */
const changes = {
  seal: `UPDATE ${topic} SET ${raised}, sealed_for = $4::text WHERE ${fenced} RETURNING epoch, revision`,
  reopen: `UPDATE ${topic} SET ${raised}, sealed_for = NULL, epoch = $4::bigint WHERE ${fenced}
    RETURNING epoch, revision`,
  drop: `WITH t AS (UPDATE ${topic} SET ${raised}, place = ${dropped} WHERE ${fenced} RETURNING *),
    d AS (INSERT INTO SCHEMA.topic_dropped (name, incarnation, epoch) SELECT name, incarnation, $4::bigint FROM t
      ON CONFLICT (name) DO UPDATE SET incarnation = excluded.incarnation, epoch = excluded.epoch RETURNING 1)
    SELECT epoch, revision FROM t WHERE ${isDropNoted}`,
  set_aside: `UPDATE ${topic} SET ${raised}, place = ${setAside} WHERE ${fenced} RETURNING epoch, revision`,
  raise_base_offset: `WITH t AS (UPDATE ${topic} SET ${raised}, base_offset = $4::bigint, last = $4::bigint + 1,
      registration = $4::bigint WHERE ${fenced} RETURNING id, epoch, revision),
    c AS (UPDATE SCHEMA.topic_client c SET position = p.position FROM ${newPositions} RETURNING 1)
    SELECT epoch, revision FROM t
    WHERE ${
    requireChangedRowsSql("topic_client", countRowsSql("c"), countRowsSql(`SCHEMA.topic_client c, ${newPositions}`))
  }`,
  delete_below: `WITH t AS (UPDATE ${topic} SET ${raised} WHERE ${fenced} RETURNING id, epoch, revision),
    m AS (DELETE FROM SCHEMA.topic_message m USING t WHERE ${isBelow}
      RETURNING octet_length(m.records) AS bytes),
    i AS (INSERT INTO SCHEMA.topic_message (topic, first, last, previous, content_sum, sum, records)
      SELECT t.id, $4::bigint, r.last, r.previous, r.content_sum, r.sum, $9::bytea
      FROM t, unnest($5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[]) r(last, previous, content_sum, sum)
      RETURNING 1)
    SELECT epoch, revision, (SELECT sum(bytes)::bigint FROM m) AS bytes FROM t
    WHERE ${
    requireChangedRowsSql(
      "topic_message",
      countRowsSql("m"),
      countRowsSql(`SCHEMA.topic_message m, t WHERE ${isBelow}`),
    )
  }
    AND ${requireChangedRowsSql("topic_message", countRowsSql("i"), countRowsSql("t, unnest($5::bigint[]) r"))}`,
  note_timeline: `UPDATE ${topic} SET ${raised} WHERE ${fenced} RETURNING epoch, revision`,
  /** Moves a subscriber to the new end if it has received all messages, or messages that are now lost. */
  note_loss: `${recordTopicLossSql(fenced, { certain: "$4::bool", lastLost: "$5::bigint" })}
    SELECT t.epoch, t.revision, t.last, l.before FROM t LEFT JOIN l ON l.topic = t.id WHERE ${isTopicLossRecordedSql}`,
  /** Makes the next opening of the topic find a possible loss. */
  suspect: `UPDATE ${topic} SET revision = revision + 1, timeline = 0, synchronous = false WHERE ${fenced}
    RETURNING epoch, revision`,
  stage: `UPDATE ${topic} SET ${raised}, place = ${staged}, last = $4::bigint, gone = $5::bigint, stored = $6::bigint,
    bytes = $7::bigint, clients = $8::bigint, registration = $9::bigint WHERE ${fenced} RETURNING epoch, revision`,
} as const;

export const setStoreGenerationSql = `INSERT INTO SCHEMA.topic_mark (server, generation, timeline, synchronous)
  VALUES ($1::text, $2::bigint, ${currentTimelineSql}, ${isCommitSynchronousSql})
  ON CONFLICT (server) DO UPDATE SET generation = excluded.generation, ${setTimelineColumnsSql}
  RETURNING generation`;

const isOldMark = `server = $1::text AND timeline <> ${currentTimelineSql} AND NOT synchronous`;
const columns = "id, epoch, revision, numbers, last";
const statements = {
  isEmpty: `SELECT NOT EXISTS (SELECT 1 FROM ${topic}) AS yes`,
  /**
   * Raises the generation above all lost generations after a failover that may have lost commits, because each topic
   * reports its own loss. If the generation is too low for another reason, does not raise it.
   */
  generation: `WITH raised AS (UPDATE SCHEMA.topic_mark
      SET generation = generation + ${idsSkippedAfterLossSql}, ${setTimelineColumnsSql}
      WHERE ${isOldMark} RETURNING generation)
    SELECT generation FROM raised UNION ALL SELECT generation FROM SCHEMA.topic_mark
    WHERE server = $1::text AND NOT EXISTS (SELECT 1 FROM raised)
    AND ${
    requireChangedRowsSql("topic_mark", countRowsSql("raised"), countRowsSql(`SCHEMA.topic_mark WHERE ${isOldMark}`))
  }`,
  setGeneration: setStoreGenerationSql,
  staged: `SELECT id, incarnation, epoch, sender FROM ${topic} WHERE name = $1::bytea AND place = ${staged}`,
  dropped: "SELECT incarnation, epoch FROM SCHEMA.topic_dropped WHERE name = $1::bytea",
  insert:
    `INSERT INTO ${topic} (name, place, incarnation, base_offset, epoch, owner, revision, sender, last, gone, stored,
      bytes, clients, registration, numbers, timeline, synchronous)
    VALUES ($1::bytea, $2::smallint, $3::text, $4::bigint, $5::bigint, $6::text, 1, $7::text, $4::bigint, $4::bigint,
      $4::bigint, 0, 0, $4::bigint, 0, ${currentTimelineSql}, ${isCommitSynchronousSql})
    ON CONFLICT DO NOTHING RETURNING ${columns}`,
  /**
   * Keeps `timeline` and `synchronous`, because they show whether there was a fail-over since the last commit. Removes
   * a seal of a lower epoch, because the topic's node already says that the receiver did not take the topic.
   */
  open: `UPDATE ${topic} SET revision = revision + 1, epoch = $3::bigint, owner = $4::text,
    sealed_for = CASE WHEN epoch < $3::bigint THEN NULL ELSE sealed_for END WHERE name = $1::bytea AND place = ${served}
    AND incarnation = COALESCE($2::text, incarnation)
    AND (epoch < $3::bigint OR (epoch = $3::bigint AND owner = $4::text))
    RETURNING ${columns}, timeline, synchronous, ${currentTimelineSql} AS timeline_now`,
  names: `SELECT DISTINCT name FROM ${topic} WHERE place = ${staged}
    OR (place = ${served} AND sealed_for IS NOT NULL) ORDER BY name`,
  find: `SELECT incarnation, base_offset, epoch, owner, sealed_for FROM ${topic} WHERE name = $1::bytea AND place ` +
    `= ${served}`,
  give_up: changeAllRowsSql(
    "topic",
    dropping,
    `name = $1::bytea AND place = ${served} AND base_offset < $2::bigint AND epoch < $3::bigint`,
  ),
  replace: changeAllRowsSql(
    "topic",
    dropping,
    `place = ${served} AND epoch < $2::bigint AND name = (SELECT name FROM ${topic} WHERE id = $1::bigint)`,
  ),
  activate: `UPDATE ${topic} SET ${raised}, place = ${served}, epoch = $2::bigint, owner = $3::text, sender = NULL
    WHERE id = $1::bigint AND place = ${staged} RETURNING ${columns}`,
  drop_unopened:
    `WITH t AS (UPDATE ${topic} SET ${raised}, place = ${dropped} WHERE name = $1::bytea AND place = ${served}
      AND incarnation = $2::text AND epoch < $3::bigint RETURNING id, name, incarnation),
    d AS (INSERT INTO SCHEMA.topic_dropped (name, incarnation, epoch) SELECT name, incarnation, $3::bigint FROM t
      ON CONFLICT (name) DO UPDATE SET incarnation = excluded.incarnation, epoch = excluded.epoch RETURNING 1)
    SELECT id FROM t WHERE ${isDropNoted}`,
  discard: changeAllRowsSql("topic", dropping, `id = $1::bigint AND place IN (${staged}, ${arriving})`),
  discardArriving: changeAllRowsSql(
    "topic",
    dropping,
    `place = ${arriving} AND owner = $1::text AND NOT (id = ANY ($2::bigint[]))`,
  ),
  isArriving: `SELECT EXISTS (SELECT 1 FROM ${topic} WHERE id = $1::bigint AND place = ${arriving}) AS yes`,
  rowBefore: `SELECT first, last, previous, records FROM SCHEMA.topic_message
    WHERE topic = $1::bigint AND first < $2::bigint AND last >= $2::bigint`,
  droppedIds: `SELECT id FROM ${topic} WHERE place = ${dropped}`,
  deleteOldLosses:
    `DELETE FROM SCHEMA.topic_loss WHERE at < clock_timestamp() - interval '${topicLossDaysKept} days' RETURNING topic`,
} as const;

const named = Object.fromEntries(
  [...Object.entries(changes), ...Object.entries(statements)].map(([name, text]) => [
    name,
    { name: `topic_${name}`, text, rowsMin: name === "setGeneration" ? 1 : 0 } satisfies SqlStatement,
  ]),
) as Readonly<Record<keyof typeof changes | keyof typeof statements, SqlStatement>>;

/** The tables whose rows are deleted together with a topic, and the key columns of these tables. */
const garbageTables = [
  ["topic_message", "first"],
  ["topic_msg_id", "client, id"],
  ["topic_resolved", "client, session, id"],
  ["topic_window", "client, session"],
  ["topic_client", "id"],
  ["topic_loss", "timeline"],
] as const;
const deleteSome = garbageTables.map(([table, key]): SqlStatement => ({
  name: `topic_garbage_${table}`,
  text: `WITH w AS (SELECT ${key} FROM SCHEMA.${table} WHERE topic = $1::bigint
      AND EXISTS (SELECT 1 FROM ${topic} WHERE id = $1::bigint AND place = ${dropped})
      LIMIT ${deletedRowsPerCommitMax} FOR UPDATE),
    d AS (DELETE FROM SCHEMA.${table} WHERE topic = $1::bigint AND (${key}) IN (SELECT ${key} FROM w) RETURNING topic)
    SELECT topic FROM d UNION ALL SELECT NULL WHERE NOT ${
    requireChangedRowsSql(table, countRowsSql("d"), countRowsSql("w"))
  }`,
}));
const deleteTopic: SqlStatement = {
  name: "topic_garbage_topic",
  text: `DELETE FROM ${topic} WHERE id = $1::bigint AND place = ${dropped} RETURNING id`,
};

/** The last state of a topic that the database has confirmed to this server. */
export interface ConfirmedTopicState extends TopicRowFence {
  readonly last: number;
}

/** The members of `PostgresTopicRows` that this class needs. */
interface FencedRows {
  readonly fences: Map<number, OpenTopicFence>;
  /** The last confirmed states of topics, including topics that are not open. */
  readonly confirmed: Map<number, ConfirmedTopicState>;
  readonly write: RunTopicStatement;
  readonly onLoss: (sentence: string) => void;
  /** True if a topic that has lost messages is not served until an operator accepts the loss. */
  readonly stopsOnLoss: boolean;
}

/** Throws the error for a change of a topic's row that had no effect although its conditions were true. */
function missingTopicChange(name: string): never {
  throw new BatonError("CONFIG", `The row of topic ${JSON.stringify(name)} is not changed: ${missingRowsHint}`);
}

export class PostgresCopyRows implements TopicCopyRows {
  readonly #rows: FencedRows;
  readonly #server: string;
  /** The IDs of dropped topics whose rows must still be deleted, step by step. */
  readonly #garbage: number[] = [];
  /**
   * True if rows of an arriving topic may be left in the database, because the reply to their insertion or removal was
   * lost.
   */
  #mayHaveIncomplete = false;

  constructor(rows: FencedRows, server: string) {
    this.#rows = rows;
    this.#server = server;
  }

  /** Returns an empty list, because a server opens a topic of a shared store only when it owns the topic. */
  active(): readonly number[] {
    return [];
  }

  /**
   * Returns only topics that a transfer to or from another store has left. All other topics are listed in the topic
   * nodes.
   */
  async names(): Promise<string[]> {
    return (await this.#run("names", [])).map((row) => decodeStoredName(row["name"]));
  }

  async isEmpty(): Promise<boolean> {
    return (await this.#run("isEmpty", []))[0]?.["yes"] === true;
  }

  async generation(server = this.#server): Promise<number> {
    return Number((await this.#run("generation", [server]))[0]?.["generation"] ?? 0);
  }

  async setGeneration(generation: number): Promise<void> {
    await this.#run("setGeneration", [this.#server, generation]);
  }

  async staged(name: string): Promise<StagedTopicRow | null> {
    const [row] = await this.#run("staged", [storedNameBuffer(name)]);
    if (row === undefined) return null;
    return {
      id: Number(row["id"]),
      incarnation: String(row["incarnation"]),
      owner: String(row["sender"]),
      epoch: Number(row["epoch"]),
    };
  }

  async dropped(name: string): Promise<DroppedCopy | null> {
    const [row] = await this.#run("dropped", [storedNameBuffer(name)]);
    return row === undefined ? null : { incarnation: String(row["incarnation"]), epoch: Number(row["epoch"]) };
  }

  async unopened(name: string): Promise<TopicCopy | null> {
    const [row] = await this.#run("find", [storedNameBuffer(name)]);
    if (row === undefined) return null;
    const sealedFor = row["sealed_for"];
    return {
      incarnation: String(row["incarnation"]),
      baseOffset: Number(row["base_offset"]),
      epoch: Number(row["epoch"]),
      sealedFor: typeof sealedFor === "string" ? sealedFor : null,
    };
  }

  /** Creates a topic, or opens the topic that an earlier attempt has created. Drops older content that was given up. */
  async create(topic: NewTopicRow): Promise<number> {
    const { name, baseOffset, epoch } = topic;
    for (const row of await this.#run("give_up", [storedNameBuffer(name), baseOffset, epoch])) {
      this.#garbage.push(Number(row["id"]));
    }
    const id = await this.#insert(topic, served, null) ??
      await this.takeOver(topic.name, topic.incarnation, topic.epoch);
    if (id !== null) return id;
    throw new BatonError("STALE_TOKEN", `Topic ${JSON.stringify(topic.name)} was changed by another server meanwhile`);
  }

  async takeOver(name: string, incarnation: string | null, epoch: number): Promise<number | null> {
    const [row] = await this.#run("open", [storedNameBuffer(name), incarnation, epoch, this.#server]);
    if (row !== undefined) {
      const before = this.#rows.confirmed.get(Number(row["id"]));
      const id = this.#open(row);
      if (before !== undefined && Number(row["revision"]) <= before.revision) {
        // The loss stays certain until it is recorded, even if the reply to the record is lost.
        this.#rows.confirmed.set(id, { ...before, revision: Number.MAX_SAFE_INTEGER });
        // Another server may have stored more messages in a later epoch.
        const lastLost = before.epoch === epoch ? before.last : null;
        await this.#noteLoss(name, id, { isCertain: true, lastLost });
      } else if (row["timeline"] === row["timeline_now"]) return id;
      else if (row["synchronous"] === true) await this.#change("note_timeline", id, []);
      else await this.#noteLoss(name, id, { isCertain: false, lastLost: null });
      return id;
    }
    const [found] = await this.#run("find", [storedNameBuffer(name)]);
    if (found === undefined) return null;
    const isOld = Number(found["epoch"]) < epoch ||
      (Number(found["epoch"]) === epoch && found["owner"] === this.#server);
    if (isOld && (incarnation === null || found["incarnation"] === incarnation)) missingTopicChange(name);
    throw new BatonError(
      "STALE_TOKEN",
      `Cannot open topic ${JSON.stringify(name)} (incarnation ${incarnation}) at epoch ${epoch}: ` +
        `the database has ${found["incarnation"]} in epoch ${found["epoch"]}, of "${found["owner"]}"`,
    );
  }

  async seal({ id, sealedFor }: TopicRow): Promise<void> {
    await this.#change("seal", id, [sealedFor]);
  }

  async reopen({ id, epoch }: TopicRow): Promise<void> {
    await this.#change("reopen", id, [epoch]);
  }

  /** Activates a staged topic in two statements, which may be repeated. */
  async activate(id: number, epoch: number, replaced: number | null): Promise<void> {
    if (replaced !== null) this.#rows.fences.delete(replaced);
    for (const row of await this.#run("replace", [id, epoch])) this.#garbage.push(Number(row["id"]));
    const [row] = await this.#run("activate", [id, epoch, this.#server]);
    if (row === undefined) throw new BatonError("STALE_TOKEN", `The staged topic ${id} of the database was changed`);
    this.#open(row);
  }

  async drop({ id }: TopicRow, epoch: number): Promise<void> {
    await this.#change("drop", id, [epoch]);
    this.#rows.fences.delete(id);
    this.#rows.confirmed.delete(id);
    this.#garbage.push(id);
  }

  async dropUnopened(name: string, incarnation: string, epoch: number): Promise<void> {
    const rows = await this.#run("drop_unopened", [storedNameBuffer(name), incarnation, epoch]);
    for (const row of rows) this.#garbage.push(Number(row["id"]));
  }

  async raiseBaseOffset(id: number, baseOffset: number, clients: readonly TopicClient[]): Promise<void> {
    await this.#change("raise_base_offset", id, [
      baseOffset,
      clients.map((client) => client.id),
      clients.map(({ position }) => position),
    ]);
  }

  async discard(id: number): Promise<void> {
    this.#rows.fences.delete(id);
    await this.#noteIncomplete(async () => {
      for (const row of await this.#run("discard", [id])) this.#garbage.push(Number(row["id"]));
    });
  }

  async discardArriving(except: ReadonlySet<number>): Promise<void> {
    const rows = await this.#run("discardArriving", [this.#server, [...except]]);
    for (const row of rows) this.#garbage.push(Number(row["id"]));
  }

  async setAside(id: number): Promise<void> {
    await this.#change("set_aside", id, []);
    this.#rows.fences.delete(id);
  }

  async addArriving(topic: NewTopicRow, sender: string): Promise<number> {
    const insert = () => this.#insert(topic, arriving, sender);
    // Names of arriving topics are not unique.
    return await this.#noteIncomplete(insert) ?? missingTopicChange(topic.name);
  }

  async isArriving(id: number): Promise<boolean> {
    return (await this.#run("isArriving", [id]))[0]?.["yes"] === true;
  }

  /**
   * Deletes messages below `first`. If a row has both deleted and kept messages, cuts the row, because the sender's
   * rows begin elsewhere.
   */
  async deleteBelow(id: number, first: number): Promise<number> {
    const kept: [number[], number[], number[], number[]] = [[], [], [], []];
    let records: Buffer = Buffer.alloc(0);
    const [row] = await this.#run("rowBefore", [id, first]);
    if (row !== undefined) {
      const all = row["records"] as Buffer;
      records = all.subarray(messageRecordOffsets(all)[first - Number(row["first"])]);
      const last = Number(row["last"]);
      const previous = Number(row["previous"]);
      const bytes = records.byteLength;
      const sum = crc32(records);
      [last, previous, sum, messageRowChecksum(id, { id: first, first, last, previous, bytes }, sum)]
        .forEach((value, column) => kept[column]?.push(value));
    }
    const [changed] = await this.#change("delete_below", id, [first, ...kept, records]);
    return Number(changed?.["bytes"] ?? 0) - records.byteLength;
  }

  async stage(id: number, ends: ReceivedTopicNumbers, replaced: number | null): Promise<void> {
    if (replaced !== null) await this.discard(replaced);
    const { last, gone, stored, bytes, clients, registration } = ends;
    await this.#change("stage", id, [last, gone, stored, bytes, clients, registration]);
    this.#rows.fences.delete(id);
  }

  /** Finds dropped topics whose rows an earlier process did not delete, and deletes old losses. */
  async findGarbage(): Promise<void> {
    const found = new Set((await this.#run("droppedIds", [])).map((row) => Number(row["id"])));
    for (const id of this.#garbage) found.delete(id);
    this.#garbage.push(...found);
    await this.#run("deleteOldLosses", []);
  }

  get hasGarbage(): boolean {
    return this.#garbage.length > 0 || this.#mayHaveIncomplete;
  }

  /** Deletes some rows of a dropped topic. Ignores a failed statement, because the next commit tries again. */
  async collectGarbage(): Promise<void> {
    try {
      if (this.#mayHaveIncomplete) {
        await this.discardArriving(new Set(this.#rows.fences.keys()));
        this.#mayHaveIncomplete = false;
      }
      const [id] = this.#garbage;
      if (id === undefined) return;
      for (const statement of deleteSome) if ((await this.#rows.write(statement, [id])).length > 0) return;
      await this.#rows.write(deleteTopic, [id]);
      this.#garbage.shift();
    } catch (error) {
      if (!(error instanceof StatementError)) throw error;
    }
  }

  async #noteIncomplete<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      this.#mayHaveIncomplete = true;
      throw error;
    }
  }

  async #insert(
    { name, incarnation, baseOffset, epoch }: NewTopicRow,
    place: number,
    sender: string | null,
  ): Promise<number | null> {
    const values = [storedNameBuffer(name), place, incarnation, baseOffset, epoch, this.#server, sender];
    const [row] = await this.#run("insert", values);
    return row === undefined ? null : this.#open(row);
  }

  /**
   * Records that a topic that is being opened has lost messages, certainly or possibly. The loss is certain if this
   * server knows of later commits than the database has. It is possible if a standby was promoted that may not have had
   * all commits. The IDs of lost messages are not used again. The record is durable before any request is answered.
   */
  async #noteLoss(
    name: string,
    id: number,
    { isCertain, lastLost }: { readonly isCertain: boolean; readonly lastLost: number | null },
  ): Promise<void> {
    const why = isCertain
      ? "The database has lost commits that it had confirmed"
      : "The database has failed over without a synchronous standby";
    if (this.#rows.stopsOnLoss) {
      if (isCertain) await this.#change("suspect", id, []);
      this.#rows.fences.delete(id);
      throw new BatonError(
        "STALE_TOKEN",
        `${why}: topic ${JSON.stringify(name)} is not served (--on-loss stop); to go on without its lost messages: ` +
          "baton pubsub server restore --store URL --accept-loss",
      );
    }
    const [row] = await this.#change("note_loss", id, [isCertain, lastLost]);
    this.#rows.onLoss(
      `${why}: messages of topic ${JSON.stringify(name)} after message ${row?.["before"]} that were answered OK ` +
        `${isCertain ? "are" : "may be"} lost`,
    );
  }

  /** Remembers the state of a row that this server has opened. Returns the ID of the row. */
  #open(row: PostgresRow): number {
    const of = (column: string) => Number(row[column]);
    const id = of("id");
    const fence = { epoch: of("epoch"), revision: of("revision") };
    this.#rows.fences.set(id, { ...fence, numbers: of("numbers") });
    this.#rows.confirmed.set(id, { ...fence, last: of("last") });
    return id;
  }

  async #change(name: keyof typeof changes, id: number, values: readonly SqlParameter[]): Promise<PostgresRow[]> {
    const fence = this.#rows.fences.get(id);
    this.#rows.fences.delete(id);
    if (fence === undefined) throw new BatonError("STALE_TOKEN", `Topic ${id} of the database is not open here`);
    const rows = await this.#run(name, [id, fence.epoch, fence.revision, ...values]);
    const [row] = rows;
    if (row === undefined) {
      throw new BatonError("STALE_TOKEN", `Another server has opened topic ${id} of the database`);
    }
    const { numbers } = fence;
    const epoch = Number(row["epoch"]);
    const revision = Number(row["revision"]);
    this.#rows.fences.set(id, { epoch, revision, numbers });
    const last = Number(row["last"] ?? this.#rows.confirmed.get(id)?.last ?? 0);
    this.#rows.confirmed.set(id, { epoch, revision, last });
    return rows;
  }

  #run(name: keyof typeof named, values: readonly SqlParameter[]): Promise<PostgresRow[]> {
    return this.#rows.write(named[name], values);
  }
}

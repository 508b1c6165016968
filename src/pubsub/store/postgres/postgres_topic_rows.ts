/**
 * The rows of topics in a PostgreSQL database that several servers share. A topic's row has an epoch and a revision.
 * Every write is one statement that compares both with the values that this server knows, and raises the revision. A
 * server that opens a topic raises the revision before it reads: statements of other servers that arrive later then
 * change nothing. If the outcome of a write is unknown, the write is not repeated. Instead the topic is opened again,
 * because its rows show whether the write was executed.
 */
import type { DatabaseLane } from "../../../base/postgres/database_lane.ts";
import { retryTemporaryDatabaseErrors } from "../../../base/postgres/database_lane.ts";
import { insertSchemaName } from "../../../base/postgres/database_schema.ts";
import type { PostgresRow, SqlParameter, SqlStatement } from "../../../base/postgres/primary_connection.ts";
import { StatementError } from "../../../base/postgres/statement_error.ts";
import { BatonError } from "../../../base/errors.ts";
import { StoreDamageLog } from "../../../base/storage/damage.ts";
import type { DiskSpace } from "../../../base/storage/disk_space.ts";
import type { Clock } from "../../../base/support/clock.ts";
import { deadlineAfter } from "../../../base/support/deadline.ts";
import { RowsUnavailable } from "../rows/loaded_data.ts";
import { decodeClientRow } from "../rows/topic_client.ts";
import { type MessageLoss, topicLossDaysKept } from "../decisions/topic_losses.ts";
import {
  type ClientReader,
  decodeTopicRow,
  type FailedTopicCommit,
  type LoadedTopicClients,
  type MissingTopicData,
  type NewRowNumbers,
  type OpenedTopic,
  type TopicChange,
  type TopicRows,
} from "../rows/topic_rows.ts";
import { type FencedTopicChange, type OpenTopicFence, topicBatchStatement } from "./batch_statement.ts";
import { LoadedTopicRows } from "./loaded_rows.ts";
import { type ConfirmedTopicState, PostgresCopyRows } from "./postgres_copy_rows.ts";
import { PostgresRowLoader, readSubscribersStatement } from "./postgres_row_loader.ts";

/** The default of `refusedMs`: about the time that clients wait for a server, in milliseconds. */
const refusedMsDefault = 5_000;

const readTopic: SqlStatement = {
  name: "topic_read",
  text: `SELECT t.*, (SELECT count(*) FROM SCHEMA.topic_client c WHERE c.topic = t.id) AS found,
    (SELECT count(*) FROM SCHEMA.topic_client c WHERE c.topic = t.id AND c.session = 0) AS plain,
    (SELECT json_agg(json_build_array(l.certain, l.last, l.last_lost, l.base_offset, l.last_client,
        extract(epoch FROM clock_timestamp() - l.at))) FROM SCHEMA.topic_loss l WHERE l.topic = t.id
      AND l.at > clock_timestamp() - interval '${topicLossDaysKept} days')::text AS losses
    FROM SCHEMA.topic t WHERE t.id = $1::bigint`,
};

export interface PostgresTopicRowsOptions {
  readonly lane: DatabaseLane;
  readonly clock: Clock;
  readonly server: string;
  readonly onLoss: (sentence: string) => void;
  /** If true, a topic that has lost messages is not served until an operator accepts the loss. False by default. */
  readonly stopsOnLoss?: boolean;
  /**
   * How long a statement waits for a connection, and how long it is repeated if it was certainly not executed, in
   * milliseconds.
   */
  readonly refusedMs?: number;
}

export class PostgresTopicRows implements TopicRows {
  readonly isShared = true;
  readonly #lane: DatabaseLane;
  readonly #clock: Clock;
  readonly #refusedMs: number;
  readonly onLoss: (sentence: string) => void;
  readonly stopsOnLoss: boolean;
  readonly #loaded = new LoadedTopicRows();
  readonly #loader: PostgresRowLoader;
  /** The fences of the topics that this server may write. */
  readonly fences = new Map<number, OpenTopicFence>();
  readonly confirmed = new Map<number, ConfirmedTopicState>();
  readonly damage = new StoreDamageLog();
  readonly copies: PostgresCopyRows;
  readonly numbers: NewRowNumbers;
  commits = 0;
  /** The statements with the name of the schema filled in. */
  readonly #prepared = new Map<SqlStatement, SqlStatement>();

  constructor(
    { lane, clock, server, onLoss, stopsOnLoss = false, refusedMs = refusedMsDefault }: PostgresTopicRowsOptions,
  ) {
    this.onLoss = onLoss;
    this.stopsOnLoss = stopsOnLoss;
    this.#refusedMs = refusedMs;
    this.#lane = lane;
    this.#clock = clock;
    const read = (statement: SqlStatement, values: readonly SqlParameter[]) => this.read(statement, values);
    this.#loader = new PostgresRowLoader(read, this.#loaded, (sentence) => this.damage.reportDamage(sentence));
    this.copies = new PostgresCopyRows(this, server);
    const next = (topicId: number) => {
      const fence = this.fences.get(topicId);
      // A topic without a fence is never written, so any number may be returned.
      return fence === undefined ? 0 : ++fence.numbers;
    };
    this.numbers = { message: (_topicId, first) => first, client: next, resolved: next, key: next };
  }

  get clients(): ClientReader {
    return this.#loaded.clients;
  }

  get hasGarbage(): boolean {
    return this.copies.hasGarbage;
  }

  async open(id: number): Promise<OpenedTopic> {
    const fence = this.fences.get(id);
    const [stored] = await this.read(readTopic, [id]);
    if (fence === undefined || stored?.["revision"] !== fence.revision || stored["epoch"] !== fence.epoch) {
      this.fences.delete(id);
      throw new BatonError("STALE_TOKEN", `Another server has opened topic ${id} of the database`);
    }
    fence.numbers = Number(stored["numbers"]);
    const row = decodeTopicRow(stored);
    const subscribers = (await this.read(readSubscribersStatement, [id])).map(decodeClientRow);
    const count = Number(stored["found"]);
    const plain = Number(stored["plain"]);
    const where = `of topic ${JSON.stringify(row.name)}`;
    const damaged = count === row.clients
      ? null
      : `${row.clients} clients ${where} were stored, but ${count} were found`;
    if (damaged !== null) this.damage.reportDamage(damaged);
    const clients: LoadedTopicClients = {
      count: Math.max(count, row.clients),
      plain,
      damaged,
      names: new Set<number>(),
      subscribers: new Map(subscribers.map((client) => [client.name, client])),
    };
    return { row, clients, losses: lossesOf(stored["losses"]), messages: this.#loaded.messagesOf(id, row.name) };
  }

  /**
   * Loads missing data. If the data cannot be loaded, the reading method that needs it later throws RowsUnavailable.
   */
  async load(lacks: readonly MissingTopicData[]): Promise<void> {
    await Promise.all(lacks.map(async (lack) => {
      try {
        await this.#loader.load(lack);
      } catch (error) {
        if (!(error instanceof StatementError)) throw error;
        this.#loaded.set(lack, new RowsUnavailable(error.message, error));
      }
    }));
  }

  forgetLoaded(): void {
    this.#loaded.forget();
  }

  async commit(changes: readonly TopicChange[]): Promise<readonly FailedTopicCommit[]> {
    const lost: FailedTopicCommit[] = [];
    const fenced: FencedTopicChange[] = [];
    for (const change of changes) {
      const fence = this.fences.get(change.topicId);
      if (fence !== undefined) fenced.push({ change, fence, numbers: fence.numbers });
      else lost.push({ topicId: change.topicId, outcome: "not_done", reason: "the topic is being opened again" });
    }
    if (fenced.length > 0) lost.push(...await this.#commitFenced(fenced));
    this.#loaded.forget();
    for (const { topicId } of lost) this.fences.delete(topicId);
    await this.copies.collectGarbage();
    return lost;
  }

  repair(): never {
    throw new BatonError(
      "USAGE",
      "Damaged data of a shared database is not given up: restore it by the database's own means",
    );
  }

  checkIndexesAgain(): void {}

  /** Returns unlimited space, because the database itself refuses writes when it is full. */
  space(): DiskSpace {
    return { bytes: Number.MAX_SAFE_INTEGER, freeBytes: Number.MAX_SAFE_INTEGER, usedBytes: 0, unusedBytes: 0 };
  }

  freeLog(): boolean {
    return false;
  }

  /** Runs a statement that changes nothing. Rejects with StatementError. */
  read(statement: SqlStatement, values: readonly SqlParameter[]): Promise<PostgresRow[]> {
    return this.write(statement, values);
  }

  /**
   * Runs a statement. Repeats it for some seconds if it was certainly not executed. Rejects with StatementError, which
   * tells whether the statement may have been executed.
   */
  async write(statement: SqlStatement, values: readonly SqlParameter[]): Promise<PostgresRow[]> {
    let prepared = this.#prepared.get(statement);
    if (prepared === undefined) {
      prepared = { ...statement, text: insertSchemaName(statement.text, this.#lane.address.schema) };
      this.#prepared.set(statement, prepared);
    }
    const final = prepared;
    using deadline = deadlineAfter(this.#clock, this.#refusedMs, {
      reason: () => new BatonError("UNREACHABLE", `the database has refused it for ${this.#refusedMs / 1000} s`),
    });
    // The deadline does not end a statement that has begun.
    return await retryTemporaryDatabaseErrors(() => this.#lane.run(final, values, { connectMs: this.#refusedMs }), {
      clock: this.#clock,
      signal: deadline.signal,
    });
  }

  async #commitFenced(fenced: readonly FencedTopicChange[]): Promise<FailedTopicCommit[]> {
    const topics = fenced.map(({ change: { topicId } }) => topicId);
    let written: Set<number>;
    try {
      const { statement, values } = topicBatchStatement(fenced);
      written = new Set((await this.write(statement, values)).map((row) => Number(row["id"])));
    } catch (error) {
      if (!(error instanceof StatementError)) throw error;
      const outcome = error.outcome === "unknown" ? "unknown" : "not_done";
      return topics.map((topicId) => ({ topicId, outcome, code: error.code, reason: error.message }));
    }
    this.commits++;
    const lost: FailedTopicCommit[] = [];
    for (const { change } of fenced) {
      const { topicId } = change;
      const fence = this.fences.get(topicId);
      if (fence !== undefined && written.has(topicId)) {
        const revision = fence.revision + 1;
        this.fences.set(topicId, { ...fence, revision });
        const last = change.row?.last ?? this.confirmed.get(topicId)?.last ?? 0;
        this.confirmed.set(topicId, { epoch: fence.epoch, revision, last });
      } else lost.push({ topicId, outcome: "not_owner", reason: "another server has opened the topic" });
    }
    return lost;
  }
}

function lossesOf(column: PostgresRow[string] | undefined): MessageLoss[] {
  type Columns = [boolean, number, number | null, number, number, number];
  return (JSON.parse(String(column ?? "[]")) as Columns[]).map((columns) => {
    const [isCertain, last, lastLost, baseOffset, lastClient, ageSeconds] = columns;
    return { isCertain, last, lastLost, baseOffset, lastClient, atMs: Date.now() - ageSeconds * 1000 };
  });
}

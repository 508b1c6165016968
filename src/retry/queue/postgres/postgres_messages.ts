/** Reads and writes the rows of messages in PostgreSQL, and values of the whole queue. */
import { BatonError } from "../../../base/errors.ts";
import type { PostgresRow, SqlParameter } from "../../../base/postgres/primary_connection.ts";
import { countRowsSql, requireChangedRowsSql } from "../../../base/postgres/required_rows.ts";
import type { Clock } from "../../../base/support/clock.ts";
import { CallBatcher } from "../../../base/support/gather.ts";
import { type MessageState, messageStates } from "../message_life.ts";
import { keepsContent, messageStateInRow, stateNumbers, statesWithBody } from "../message_row.ts";
import type { FoundMessage, MessageLifeChange, MessageRows, NewRow, RowQuery } from "../retry_rows.ts";
import { operatorChangesMax } from "../retry_store_limits.ts";
import type { DeadLetterCounts, MessageConditions, MessageFilter } from "../store_methods.ts";
import type { StateTotals } from "../stored_message.ts";
import { contentCrc, encodeErrorText, type PostgresQueue, readContent } from "./postgres_queue.ts";
import { databaseNowSql } from "./postgres_queue_tables.ts";

/** Limits of one statement. */
const acceptMessagesMax = 1024;
const acceptBytesMax = 16 << 20;

const ofQueue = "FROM SCHEMA.retry r WHERE r.queue = $1";
/** Columns of a message, with the last error of the dead-letter sink. */
const messageColumns = "r.*, (SELECT w.forward_error FROM SCHEMA.queue w WHERE w.id = r.queue) AS sink_error";

/** A message to store, with the time of this decision on the clock of the database. */
interface DecidedRow extends NewRow {
  readonly nowMs: number;
}

export class PostgresMessages implements MessageRows {
  readonly #queue: PostgresQueue;
  readonly #clock: Clock;
  readonly #inserts: CallBatcher<readonly DecidedRow[], number>;
  #counted: { readonly totals: Record<MessageState, StateTotals>; readonly untilMs: number } | null = null;
  /** The messages that this process has stored since the last count. */
  #added = { count: 0, bytes: 0 };

  constructor(queue: PostgresQueue, { clock, onFull }: { readonly clock: Clock; readonly onFull: () => void }) {
    this.#queue = queue;
    this.#clock = clock;
    this.#inserts = new CallBatcher({
      itemsMax: acceptMessagesMax,
      sizeMax: acceptBytesMax,
      sizeOf: (rows) => rows.reduce((sum, { message: { body } }) => sum + body.byteLength, 0),
      work: async (groups) => {
        const values = [queue.id, ...acceptStatementValues(queue, groups.flat())];
        const [row] = await queue.run("queue_accept", acceptText, values, { lane: "accepts" }).catch((error) => {
          if (error instanceof BatonError && error.code === "STORE_FULL") onFull();
          throw error;
        });
        let next = Number(row?.["seq"]);
        return groups.map(({ length }) => (next += length) - length);
      },
    });
  }

  async row(seq: number): Promise<PostgresRow | null> {
    return (await this.#queue.run("queue_row", `SELECT r.* ${ofQueue} AND r.seq = $2`, [this.#queue.id, seq]))[0] ??
      null;
  }

  async find({ afterSeq, max, redrive, ...filter }: RowQuery): Promise<PostgresRow[]> {
    const { where, name, values } = conditionOf(filter);
    const text = `SELECT ${messageColumns} ${ofQueue} AND ${where} AND r.seq > $6 ` +
      "AND ($8::bigint IS NULL OR (r.redriven < $8 AND r.forwarding < 3)) ORDER BY r.seq LIMIT $7";
    const { id } = this.#queue;
    return await this.#queue.run(`queue_list_${name}`, text, [id, ...values, afterSeq, max, redrive ?? null]);
  }

  /** Reads messages and their contents in one statement, so that both are from the same moment. */
  async read(seqs: readonly number[]): Promise<FoundMessage[]> {
    const text = `SELECT ${messageColumns}, b.crc, b.head, b.body FROM SCHEMA.retry r
      LEFT JOIN SCHEMA.retry_body b ON b.queue = r.queue AND b.seq = r.seq
      WHERE r.queue = $1 AND r.seq = ANY ($2::bigint[]) ORDER BY array_position($2::bigint[], r.seq)`;
    const rows = await this.#queue.run("queue_show", text, [this.#queue.id, seqs]);
    return rows.map((row) => ({ row, content: keepsContent(row) ? readContent(this.#queue, row) : null }));
  }

  /** Returns true, because the database checks its rows itself. */
  isIntact(): boolean {
    return true;
  }

  remove(): void {}

  /**
   * Returns the number and size of messages. Counts again only after 20 times the duration of the last count, because
   * counting reads all messages of the queue.
   */
  async used(): Promise<StateTotals> {
    const counted = this.#counted;
    const totals = counted !== null && this.#clock.now() < counted.untilMs ? counted.totals : await this.totals();
    const sum = (what: keyof StateTotals) =>
      statesWithBody.reduce((all, state) => all + totals[state][what], this.#added[what]);
    return { count: sum("count"), bytes: sum("bytes") };
  }

  /** Stores the messages of several calls in one statement. */
  async insert(rows: readonly NewRow[], nowMs: number): Promise<number> {
    const first = await this.#inserts.add(rows.map((row) => ({ ...row, nowMs })));
    this.noteAdded(rows);
    return first;
  }

  noteAdded(rows: readonly NewRow[]): void {
    const bytes = rows.reduce((sum, { message: { body } }) => sum + body.byteLength, 0);
    this.#added = { count: this.#added.count + rows.length, bytes: this.#added.bytes + bytes };
  }

  async write(changes: readonly MessageLifeChange[]): Promise<number> {
    return (await this.#queue.write(changes)).size;
  }

  async startRedrive(): Promise<number> {
    const text = "UPDATE SCHEMA.queue SET redrives = redrives + 1 WHERE id = $1 RETURNING redrives";
    const [row] = await this.#queue.run("queue_redrives", text, [this.#queue.id], { rowsMin: 1 });
    return Number(row?.["redrives"]);
  }

  async countDeadLetters(filter: MessageConditions): Promise<DeadLetterCounts> {
    const { where, name, values } = conditionOf({ ...filter, states: ["dead"] });
    const text =
      `SELECT count(*) AS dead, count(*) FILTER (WHERE r.forwarding = 3) AS forwarded ${ofQueue} AND ${where}`;
    const [row] = await this.#queue.run(`queue_count_${name}`, text, [this.#queue.id, ...values]);
    const forwarded = Number(row?.["forwarded"]);
    return { redrivable: Number(row?.["dead"]) - forwarded, forwarded };
  }

  async setPaused(isPaused: boolean): Promise<void> {
    const text = "UPDATE SCHEMA.queue SET paused = $2 WHERE id = $1 RETURNING id";
    await this.#queue.run("queue_pause", text, [this.#queue.id, isPaused], { rowsMin: 1 });
  }

  async isPaused(): Promise<boolean> {
    const text = "SELECT paused FROM SCHEMA.queue WHERE id = $1";
    return (await this.#queue.run("queue_paused", text, [this.#queue.id]))[0]?.["paused"] === true;
  }

  async waitingTimes(): Promise<{ readonly oldestMs: number | null; readonly nextMs: number | null }> {
    const text = `SELECT (SELECT r.first_ms ${ofQueue} AND r.state < 2 ORDER BY r.seq LIMIT 1) AS oldest, ` +
      `(SELECT r.next_ms ${ofQueue} AND r.state = 0 ORDER BY r.next_ms, r.seq LIMIT 1) AS next`;
    const [row] = await this.#queue.run("queue_times", text, [this.#queue.id]);
    const localMs = (atMs: unknown) => atMs === null ? null : this.#queue.toLocalMs(Number(atMs));
    return { oldestMs: localMs(row?.["oldest"]), nextMs: localMs(row?.["next"]) };
  }

  /**
   * Returns the totals of each state. Removed messages are included in the numbers, but not in the bytes. Reads all
   * messages of the queue.
   */
  async totals(): Promise<Record<MessageState, StateTotals>> {
    const startMs = this.#clock.now();
    const text =
      `SELECT state, count(*) AS count, sum(CASE WHEN state < 2 OR state = 3 THEN bytes ELSE 0 END)::bigint AS bytes ` +
      `${ofQueue} GROUP BY state UNION ALL SELECT state, count, 0 FROM SCHEMA.retry_removed WHERE queue = $1`;
    const totals = Object.fromEntries(messageStates.map((state) => [state, { count: 0, bytes: 0 }])) as Record<
      MessageState,
      { count: number; bytes: number }
    >;
    for (const row of await this.#queue.run("queue_totals", text, [this.#queue.id])) {
      const total = totals[messageStateInRow(row)];
      total.count += Number(row["count"]);
      total.bytes += Number(row["bytes"]);
    }
    const tookMs = this.#clock.now() - startMs;
    this.#counted = { totals, untilMs: this.#clock.now() + 20 * tookMs };
    this.#added = { count: 0, bytes: 0 };
    return totals;
  }

  /** Removes old messages. `beforeMs` is on the clock of this process. */
  async forget(beforeMs: number): Promise<number> {
    const keepMs = Math.max(0, Math.round(Date.now() - beforeMs));
    const text = `WITH old AS (SELECT seq FROM SCHEMA.retry WHERE queue = $1 AND ended_ms < ${databaseNowSql} - $2
        ORDER BY ended_ms LIMIT ${operatorChangesMax} FOR UPDATE SKIP LOCKED),
      gone AS (DELETE FROM SCHEMA.retry WHERE queue = $1 AND seq = ANY (ARRAY(SELECT seq FROM old)) RETURNING state),
      ended AS (SELECT state, count(*) AS count FROM gone WHERE state <> 3 GROUP BY state),
      counted AS (INSERT INTO SCHEMA.retry_removed AS t SELECT $1, state, count FROM ended
        ON CONFLICT (queue, state) DO UPDATE SET count = t.count + excluded.count RETURNING 1)
      SELECT (SELECT count(*) FROM gone) AS count WHERE ${
      requireChangedRowsSql("retry", countRowsSql("gone"), countRowsSql("old"))
    } AND ${requireChangedRowsSql("retry_removed", countRowsSql("counted"), countRowsSql("ended"))}`;
    const [row] = await this.#queue.runOnce("queue_forget", text, [this.#queue.id, keepMs]);
    const removed = Number(row?.["count"]);
    // A batch makes an insertion repeatable after a lost reply. The repetition follows within seconds.
    const old = `DELETE FROM SCHEMA.retry_batch WHERE queue = $1 AND at_ms < ${databaseNowSql} - 86400000`;
    if (removed < operatorChangesMax) await this.#queue.runOnce("queue_forget_batches", old, [this.#queue.id]);
    return removed;
  }

  /**
   * Returns true if there is an open message. A damaged message counts: it can be claimed and becomes a dead letter.
   */
  async canBeTried(): Promise<boolean> {
    return (await this.#queue.run("queue_open", `SELECT 1 AS found ${ofQueue} AND r.state < 2 LIMIT 1`, [
      this.#queue.id,
    ]))
      .length > 0;
  }

  /** Returns 0, because a damaged message becomes a dead letter when it is claimed. */
  countDamaged(): number {
    return 0;
  }

  async usedBytes(): Promise<number> {
    const { id } = this.#queue;
    const text = "SELECT coalesce(sum(octet_length(b.body) + octet_length(b.head)), 0)::bigint AS bytes " +
      "FROM SCHEMA.retry_body b WHERE b.queue = $1";
    return Number((await this.#queue.run("queue_size", text, [id]))[0]?.["bytes"]);
  }
}

/**
 * Returns the arguments of `queue_accept` after the queue. A repetition has the same token, so that messages are stored
 * only once.
 */
export function acceptStatementValues(queue: PostgresQueue, rows: readonly DecidedRow[]): SqlParameter[] {
  const all = rows.map((row) => ({ ...row, head: Buffer.from(JSON.stringify(row.message.head)) }));
  const each = <T>(of: (one: (typeof all)[number]) => T) => all.map(of);
  return [
    crypto.randomUUID(),
    each(({ message: { key } }) => key === null ? null : Buffer.from(key)),
    each(({ life }) => stateNumbers[life.state]),
    each(({ life }) => life.tries),
    each(({ life, nowMs }) => Math.round(life.nextAtMs - nowMs)),
    each(({ life }) => life.reason),
    each(({ message: { tried } }) => encodeErrorText(tried?.error ?? null)),
    each(({ life }) => queue.forwardingOf(life)),
    each(({ head, message: { body } }) => contentCrc(head, body)),
    each(({ head }) => head.byteLength),
    each(({ message: { body } }) => body.byteLength),
    Buffer.concat(all.flatMap(({ head, message: { body } }) => [head, body])),
  ];
}

const acceptText = "SELECT SCHEMA.queue_accept($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) AS seq";

/**
 * Returns a condition with the parameters $2 to $5. For a single state, the database can use the index of that state.
 */
function conditionOf({ states, key, reason, error }: MessageFilter): {
  readonly where: string;
  readonly name: string;
  readonly values: readonly SqlParameter[];
} {
  const [only] = states;
  const name = states.length === 1 && only === "dead"
    ? "dead"
    : states.every((state) => state === "waiting" || state === "in_flight")
    ? "open"
    : "any";
  const index = { dead: "r.state = 3 AND", open: "r.state < 2 AND", any: "" }[name];
  return {
    name,
    where: `${index} r.state = ANY ($2::smallint[]) AND ($3::bytea IS NULL OR r.key = $3) ` +
      "AND ($4::text IS NULL OR r.reason = $4) AND ($5::bytea IS NULL OR position($5 in r.error) > 0)",
    values: [
      states.map((state) => stateNumbers[state]),
      key === undefined ? null : Buffer.from(key),
      reason ?? null,
      error === undefined ? null : Buffer.from(error),
    ],
  };
}

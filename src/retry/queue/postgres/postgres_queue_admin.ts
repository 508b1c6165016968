/**
 * Operators' calls of a queue in PostgreSQL: messages are listed, changed, and removed when they are old, and
 * everything is checked.
 */
import type { PostgresRow, SqlParameter } from "../../../base/postgres/primary_connection.ts";
import { countRowsSql, mustChangeRowsSql } from "../../../base/postgres/required_rows.ts";
import { BatonError } from "../../../base/errors.ts";
import { noProgress, type WorkProgress } from "../../../base/support/work_progress.ts";
import { type MessageChange, type MessageState, messageStates } from "../message_life.ts";
import {
  changedLife,
  keepsContent,
  messageStateInRow,
  numberOfId,
  stateNumbers,
  textInRow,
  unchangedState,
} from "../message_row.ts";
import type { ChangeRefusal, MessageConditions, MessageFilter, RetryVerifyReport } from "../store_methods.ts";
import { changesMax } from "../retry_store_limits.ts";
import {
  damageSentence,
  type LifeChange,
  type PostgresQueue,
  readMessageContent,
  toStoredMessage,
} from "./postgres_queue.ts";
import { databaseNow } from "./postgres_queue_tables.ts";
import type { ClaimedMessage, StateTotals, StoredMessage } from "../stored_message.ts";

/** Messages that `verify` reads at a time, and the most problems that it reports. */
const verifyPageRows = 200;
const problemsMax = 100;

const ofQueue = "FROM SCHEMA.retry r WHERE r.queue = $1";
/** Columns of a message, with the error of the sink of dead letters. */
export const messageColumns = "r.*, (SELECT w.forward_error FROM SCHEMA.queue w WHERE w.id = r.queue) AS sink_error";

export class PostgresQueueAdmin {
  readonly #queue: PostgresQueue;

  constructor(queue: PostgresQueue) {
    this.#queue = queue;
  }

  async list(
    filter: MessageFilter,
    { afterSeq, max }: { readonly afterSeq: number; readonly max: number },
  ): Promise<StoredMessage[]> {
    const { where, name, values } = conditionOf(filter);
    const text = `SELECT ${messageColumns} ${ofQueue} AND ${where} AND r.seq > $6 ORDER BY r.seq LIMIT $7`;
    const rows = await this.#queue.run(`queue_list_${name}`, text, [this.#queue.id, ...values, afterSeq, max]);
    return rows.map((row) => toStoredMessage(this.#queue, row));
  }

  /** Rejects with BAD_DATA if the content is damaged. */
  async show(id: string): Promise<(StoredMessage & Partial<Pick<ClaimedMessage, "head" | "body">>) | null> {
    const seq = numberOfId(id, this.#queue.key);
    if (seq === null) return null;
    const text = `SELECT ${messageColumns}, b.crc, b.head, b.body FROM SCHEMA.retry r LEFT JOIN SCHEMA.retry_body b ` +
      "ON b.queue = r.queue AND b.seq = r.seq WHERE r.queue = $1 AND r.seq = $2";
    const [row] = await this.#queue.run("queue_show", text, [this.#queue.id, seq]);
    if (row === undefined) return null;
    const message = toStoredMessage(this.#queue, row);
    if (!keepsContent(row)) return message;
    const content = readMessageContent(this.#queue, row);
    if (content === null) throw new BatonError("BAD_DATA", damageSentence(this.#queue, row));
    return { ...message, ...content };
  }

  /** Null: the change was made. A message that another process changes at the same moment is looked at again. */
  async change(id: string, change: MessageChange): Promise<ChangeRefusal | null> {
    const seq = numberOfId(id, this.#queue.key);
    for (;;) {
      const [row] = seq === null
        ? []
        : await this.#queue.run("queue_row", `SELECT r.* ${ofQueue} AND r.seq = $2`, [this.#queue.id, seq]);
      if (row === undefined) return "unknown";
      const decided = this.#decide(row, change);
      if (decided === null) return unchangedState(row);
      if ((await this.#queue.write([decided])).size > 0) return null;
    }
  }

  async startRedrive(): Promise<number> {
    const text = "UPDATE SCHEMA.queue SET redrives = redrives + 1 WHERE id = $1 RETURNING redrives";
    const [row] = await this.#queue.run("queue_redrives", text, [this.#queue.id], { rowsMin: 1 });
    return Number(row?.["redrives"]);
  }

  /**
   * Redrives up to `max` dead letters that this redrive has not redriven before; fewer than `max`: there are no others.
   */
  async redrive(number: number, filter: MessageConditions, max: number): Promise<number> {
    const { where, name, values } = conditionOf({ ...filter, states: ["dead"] });
    const text = `SELECT r.* ${ofQueue} AND ${where} AND r.redriven < $6 AND r.forwarding < 3 ORDER BY r.seq LIMIT $7`;
    const limit = Math.min(max, changesMax);
    for (let done = 0;;) {
      const rows = await this.#queue.run(`queue_redrivable_${name}`, text, [
        this.#queue.id,
        ...values,
        number,
        limit - done,
      ]);
      const changes = rows.flatMap((row) => this.#decide(row, "redrive") ?? []).map((one) => ({
        ...one,
        redrive: number,
      }));
      done += (await this.#queue.write(changes)).size;
      if (rows.length === 0 || done >= limit) return done;
    }
  }

  async countRedrivable(filter: MessageConditions): Promise<number> {
    const { where, name, values } = conditionOf({ ...filter, states: ["dead"] });
    const text = `SELECT count(*) AS count ${ofQueue} AND ${where} AND r.forwarding < 3`;
    const [row] = await this.#queue.run(`queue_count_${name}`, text, [this.#queue.id, ...values]);
    return Number(row?.["count"]);
  }

  /** Purges up to `changesMax` dead letters. Returns their number; 0: none is left. */
  async purge(filter: MessageConditions): Promise<number> {
    const { where, name, values } = conditionOf({ ...filter, states: ["dead"] });
    const text = `SELECT r.* ${ofQueue} AND ${where} ORDER BY r.seq LIMIT ${changesMax}`;
    for (;;) {
      const rows = await this.#queue.run(`queue_purgeable_${name}`, text, [this.#queue.id, ...values]);
      const written = await this.#queue.write(rows.flatMap((row) => this.#decide(row, "purge") ?? []));
      if (rows.length === 0 || written.size > 0) return written.size;
    }
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
    const numberOrNull = (value: PostgresRow[string] | undefined) => value === null ? null : Number(value);
    return { oldestMs: numberOrNull(row?.["oldest"]), nextMs: numberOrNull(row?.["next"]) };
  }

  /** Counts by state. Counts what was removed, too, except bytes. Reads all messages of the queue. */
  async totals(): Promise<Record<MessageState, StateTotals>> {
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
    return totals;
  }

  /**
   * Removes up to `changesMax` messages that ended before `beforeMs`, by the clock of this process. Returns their
   * number.
   */
  async forget(beforeMs: number): Promise<number> {
    const keepMs = Math.max(0, Math.round(Date.now() - beforeMs));
    const text = `WITH old AS (SELECT seq FROM SCHEMA.retry WHERE queue = $1 AND ended_ms < ${databaseNow} - $2
        ORDER BY ended_ms LIMIT ${changesMax} FOR UPDATE SKIP LOCKED),
      gone AS (DELETE FROM SCHEMA.retry WHERE queue = $1 AND seq = ANY (ARRAY(SELECT seq FROM old)) RETURNING state),
      ended AS (SELECT state, count(*) AS count FROM gone WHERE state <> 3 GROUP BY state),
      counted AS (INSERT INTO SCHEMA.retry_removed AS t SELECT $1, state, count FROM ended
        ON CONFLICT (queue, state) DO UPDATE SET count = t.count + excluded.count RETURNING 1)
      SELECT (SELECT count(*) FROM gone) AS count WHERE ${
      mustChangeRowsSql("retry", countRowsSql("gone"), countRowsSql("old"))
    } AND ${mustChangeRowsSql("retry_removed", countRowsSql("counted"), countRowsSql("ended"))}`;
    const [row] = await this.#queue.runOnce("queue_forget", text, [this.#queue.id, keepMs]);
    const removed = Number(row?.["count"]);
    // A lost reply is repeated within seconds: its batch is not needed after a day.
    const old = `DELETE FROM SCHEMA.retry_batch WHERE queue = $1 AND at_ms < ${databaseNow} - 86400000`;
    if (removed < changesMax) await this.#queue.runOnce("queue_forget_batches", old, [this.#queue.id]);
    return removed;
  }

  /** Whether an open message exists: none is damaged in a way that keeps it from being tried. */
  async canBeTried(): Promise<boolean> {
    return (await this.#queue.run("queue_open", `SELECT 1 AS found ${ofQueue} AND r.state < 2 LIMIT 1`, [
      this.#queue.id,
    ]))
      .length > 0;
  }

  async usedBytes(): Promise<number> {
    const { id } = this.#queue;
    const text = "SELECT coalesce(sum(octet_length(b.body) + octet_length(b.head)), 0)::bigint AS bytes " +
      "FROM SCHEMA.retry_body b WHERE b.queue = $1";
    return Number((await this.#queue.run("queue_size", text, [id]))[0]?.["bytes"]);
  }

  /**
   * Checks everything in the queue, even one in use: the contents, the owners, and the turns of keys. Reads every
   * message once; a message and its content are of one moment, messages of different pages are not.
   */
  async verify(progress: WorkProgress = noProgress): Promise<RetryVerifyReport> {
    const problems: string[] = [];
    const addProblem = (sentence: string) => void (problems.length < problemsMax && problems.push(sentence));
    const { messages, bytes } = await this.#verifyMessages(addProblem, progress);
    const turns = `SELECT key, count(*) FILTER (WHERE turn) AS heads FROM SCHEMA.retry
    WHERE queue = $1 AND state < 2 AND key IS NOT NULL
    GROUP BY key HAVING count(*) FILTER (WHERE turn) <> 1 LIMIT ${problemsMax}`;
    for (const row of await this.#queue.run("queue_verify_turns", turns, [this.#queue.id])) {
      addProblem(`${row["heads"]} messages with the key ${textInRow(row["key"])} are next, instead of 1`);
    }
    const orphans = `SELECT count(*) AS count FROM SCHEMA.retry_body b WHERE b.queue = $1
    AND NOT EXISTS (SELECT 1 FROM SCHEMA.retry r WHERE r.queue = b.queue AND r.seq = b.seq)`;
    const [row] = await this.#queue.run("queue_verify_bodies", orphans, [this.#queue.id]);
    if (Number(row?.["count"]) > 0) addProblem(`${row?.["count"]} bodies belong to no message`);
    return { messages, bytes, problems };
  }

  async #verifyMessages(
    addProblem: (sentence: string) => void,
    progress: WorkProgress,
  ): Promise<Omit<RetryVerifyReport, "problems">> {
    const queue = this.#queue;
    let messages = 0;
    let bytes = 0;
    progress.startPart({ noun: "message", verb: "checked", total: null });
    const text = `SELECT r.seq, r.state, r.owner, r.forwarding, r.bytes, b.crc, b.head, b.body, p.id AS processor
    FROM SCHEMA.retry r LEFT JOIN SCHEMA.retry_body b ON b.queue = r.queue AND b.seq = r.seq
    LEFT JOIN SCHEMA.processor p ON p.id = r.owner
    WHERE r.queue = $1 AND r.seq > $2 ORDER BY r.seq LIMIT ${verifyPageRows}`;
    for (let after = 0;;) {
      const rows = await queue.run("queue_verify", text, [queue.id, after]);
      for (const row of rows) {
        progress.add(1);
        messages++;
        const state = messageStateInRow(row);
        const what = `message ${queue.idOf(Number(row["seq"]))}`;
        const isKept = keepsContent(row);
        if (isKept) bytes += Number(row["bytes"]);
        if (isKept && readMessageContent(queue, row) === null) {
          addProblem(`${what} is ${state}, but its content is damaged or missing`);
        }
        if (!isKept && row["body"] !== null) addProblem(`${what} is ${state}, but still has a body`);
        if (state === "in_flight" && row["processor"] === null) {
          addProblem(`${what} is in flight, but no processor owns it`);
        }
        if (state !== "in_flight" && row["owner"] !== null) addProblem(`${what} is ${state}, but a processor owns it`);
      }
      if (rows.length < verifyPageRows) return { messages, bytes };
      after = Number(rows.at(-1)?.["seq"]);
    }
  }

  #decide(row: PostgresRow, change: MessageChange): LifeChange | null {
    const nowMs = this.#queue.nowMs();
    const next = changedLife(row, change, nowMs);
    return next === null ? null : { seq: Number(row["seq"]), rev: Number(row["rev"]), next, nowMs };
  }
}

/** The values are $2 to $5. A condition that names one state lets the database use the index of that state. */
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

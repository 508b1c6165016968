/**
 * Forwards dead letters of a queue in PostgreSQL. Only the process that has the role of the forwarder sends them. It
 * has the role for `roleMs` on the clock of the database, and renews it while dead letters are pending.
 */
import type { PostgresRow } from "../../../base/postgres/primary_connection.ts";
import { countRowsSql, requireChangedRowsSql } from "../../../base/postgres/required_rows.ts";
import type { Clock } from "../../../base/support/clock.ts";
import { textInRow } from "../message_row.ts";
import type { LetterRows, MessageRow } from "../retry_rows.ts";
import type { DeadLetterBacklog } from "../store_methods.ts";
import { forwardDelayMs, operatorChangesMax } from "../retry_store_limits.ts";
import { encodeErrorText, type PostgresQueue } from "./postgres_queue.ts";
import { databaseNowSql } from "./postgres_queue_tables.ts";

/** How long a process has the role, in milliseconds. If a process is killed, others wait this long. */
const roleMs = 15_000;

/** The delay of a letter after a failure, in SQL. `failures` is the number of earlier failures. */
const delayAfter = (failures: string) =>
  `least(${forwardDelayMs.max}, ${forwardDelayMs.first} * (2 ^ least(${failures}, 20)))::bigint`;

const pending = "r.queue = $1 AND r.state = 3 AND r.forwarding IN (1, 2)";

export class PostgresLetters implements LetterRows {
  readonly #queue: PostgresQueue;
  readonly #clock: Clock;
  readonly #token = crypto.randomUUID();
  /** The time at which this process last took or renewed the role; null if another process may have it. */
  #renewedMs: number | null = null;
  #cancelRenewal = () => {};

  constructor(queue: PostgresQueue, clock: Clock) {
    this.#queue = queue;
    this.#clock = clock;
  }

  async takeOpen(): Promise<void> {
    const text = `WITH w AS (SELECT seq FROM SCHEMA.retry r WHERE r.queue = $1 AND r.state = 3 AND r.forwarding = 0
        AND r.reason IS DISTINCT FROM 'damaged' ORDER BY r.seq LIMIT ${operatorChangesMax} FOR UPDATE),
      taken AS (UPDATE SCHEMA.retry r SET forwarding = 1 FROM w WHERE r.queue = $1 AND r.seq = w.seq RETURNING 1)
      SELECT 1 AS done WHERE ${requireChangedRowsSql("retry", countRowsSql("taken"), countRowsSql("w"))}`;
    await this.#queue.run("queue_letters_open", text, [this.#queue.id]);
  }

  /** Returns numbers and sizes of pending dead letters; an empty list while another process sends. */
  async pending(max: number): Promise<PostgresRow[]> {
    const found = await this.#pendingRows(max);
    if (found.length === 0) await this.leaveRole();
    return found.length > 0 && await this.#takeRole() ? found : [];
  }

  /**
   * Reads the pending dead letters. A delay that would end later than the longest delay is ignored, because the clock
   * was set back.
   */
  async #pendingRows(max: number): Promise<PostgresRow[]> {
    const fresh = `SELECT r.seq, r.bytes FROM SCHEMA.retry r WHERE ${pending} AND r.failures = 0
      ORDER BY r.forwarding DESC, r.seq LIMIT $2`;
    const rows = await this.#queue.run("queue_letters_fresh", fresh, [this.#queue.id, max]);
    if (rows.length >= max) return rows;
    const failed = `SELECT r.seq, r.bytes FROM SCHEMA.retry r WHERE ${pending} AND r.failures > 0
      AND r.delayed_until_ms NOT BETWEEN ${databaseNowSql} + 1 AND ${databaseNowSql} + $3 ORDER BY r.seq LIMIT $2`;
    const values = [this.#queue.id, max - rows.length, forwardDelayMs.max];
    return [...rows, ...await this.#queue.run("queue_letters_failed", failed, values)];
  }

  async #takeRole(): Promise<boolean> {
    const nowMs = this.#clock.now();
    if (this.#renewedMs !== null && nowMs - this.#renewedMs < roleMs / 3) return true;
    const text = `UPDATE SCHEMA.queue SET forwarder = $2, forwarder_end = ${databaseNowSql} + $3
      WHERE id = $1 AND (forwarder = $2 OR forwarder_end < ${databaseNowSql}) RETURNING id`;
    const rows = await this.#queue.run("queue_forwarder", text, [this.#queue.id, this.#token, roleMs]);
    this.#cancelRenewal();
    this.#renewedMs = rows.length > 0 ? nowMs : null;
    // Ignores a failure: the next call will meet it, too, and the role ends by itself.
    const renew = () => void this.#takeRole().catch(() => {});
    if (rows.length > 0) this.#cancelRenewal = this.#clock.startTimer(roleMs / 3, renew);
    return rows.length > 0;
  }

  /** Gives up the role, because nothing is pending or the process ends. */
  async leaveRole(): Promise<void> {
    this.#cancelRenewal();
    if (this.#renewedMs === null) return;
    this.#renewedMs = null;
    const text = "UPDATE SCHEMA.queue SET forwarder_end = 0 WHERE id = $1 AND forwarder = $2";
    await this.#queue.runOnce("queue_forwarder_ends", text, [this.#queue.id, this.#token], { deadlineMs: 1000 });
  }

  async deadLetterBacklog(): Promise<DeadLetterBacklog> {
    const text = `SELECT count(*) FILTER (WHERE r.forwarding < 3) AS count,
      count(*) FILTER (WHERE r.forwarding = 3) AS forwarded,
      (SELECT coalesce(w.forward_error, (SELECT f.forward_error FROM SCHEMA.retry f
        WHERE f.queue = $1 AND f.state = 3 AND f.forward_error IS NOT NULL
        ORDER BY f.delayed_until_ms - ${delayAfter("f.failures - 1")} DESC, f.seq LIMIT 1))
        FROM SCHEMA.queue w WHERE w.id = $1) AS error
      FROM SCHEMA.retry r WHERE r.queue = $1 AND r.state = 3 AND r.forwarding > 0`;
    const [row] = await this.#queue.run("queue_backlog", text, [this.#queue.id]);
    return {
      count: Number(row?.["count"]),
      forwarded: Number(row?.["forwarded"]),
      error: textInRow(row?.["error"]),
    };
  }

  async markForwarding(seq: number, fence: number, offset: number | null): Promise<boolean> {
    const found = `SELECT r.seq FROM SCHEMA.retry r WHERE ${pending} AND r.seq = $2 AND r.fence = $3`;
    const key = [this.#queue.id, seq, fence];
    if (offset === null) return (await this.#queue.run("queue_letter_found", found, key)).length > 0;
    const text = `WITH w AS (${found} FOR UPDATE),
      marked AS (UPDATE SCHEMA.retry r SET forwarding = 2, forward_offset = $4 FROM w
        WHERE r.queue = $1 AND r.seq = w.seq RETURNING 1)
      SELECT ${countRowsSql("w")} AS done
      WHERE ${requireChangedRowsSql("retry", countRowsSql("marked"), countRowsSql("w"))}`;
    const [row] = await this.#queue.run("queue_forwarding", text, [...key, offset]);
    return Number(row?.["done"]) > 0;
  }

  /**
   * Marks a dead letter as forwarded. Also removes the error of the sink, because the sink works again. An earlier copy
   * of the statement may have marked it.
   */
  async markForwarded(seq: number, fence: number): Promise<boolean> {
    const text =
      `WITH w AS (SELECT seq FROM SCHEMA.retry r WHERE ${pending} AND r.seq = $2 AND r.fence = $3 FOR UPDATE),
      sent AS (UPDATE SCHEMA.retry r SET forwarding = 3, rev = r.rev + 1, ended_ms = ${databaseNowSql}, bytes = 0,
        failures = 0, forward_error = NULL FROM w WHERE r.queue = $1 AND r.seq = w.seq RETURNING r.seq),
      works AS (UPDATE SCHEMA.queue SET forward_error = NULL WHERE id = $1 AND forward_error IS NOT NULL
        AND EXISTS (SELECT 1 FROM sent)),
      bodies AS (SELECT b.seq FROM SCHEMA.retry_body b, sent WHERE b.queue = $1 AND b.seq = sent.seq),
      gone AS (DELETE FROM SCHEMA.retry_body b USING sent WHERE b.queue = $1 AND b.seq = sent.seq RETURNING 1)
      SELECT (SELECT count(*) FROM SCHEMA.retry r WHERE r.queue = $1 AND r.seq = $2 AND r.fence = $3
        AND (r.forwarding = 3 OR EXISTS (SELECT 1 FROM w))) AS done
      WHERE ${requireChangedRowsSql("retry", countRowsSql("sent"), countRowsSql("w"))}
      AND ${requireChangedRowsSql("retry_body", countRowsSql("gone"), countRowsSql("bodies"))}`;
    const [row] = await this.#queue.run("queue_forwarded", text, [this.#queue.id, seq, fence]);
    return Number(row?.["done"]) > 0;
  }

  async clearForwardDelays(): Promise<void> {
    const text = `UPDATE SCHEMA.retry r SET delayed_until_ms = 0 WHERE ${pending} AND r.delayed_until_ms > 0`;
    await this.#queue.run("queue_delays", text, [this.#queue.id]);
  }

  /** Records a failure. After a failure of one dead letter, removes the error of the sink, because the sink works. */
  async recordForwardFailure(seq: number | null, error: string): Promise<void> {
    if (seq === null) {
      const text = "UPDATE SCHEMA.queue SET forward_error = $2 WHERE id = $1 AND forward_error IS DISTINCT FROM $2";
      await this.#queue.run("queue_sink_failed", text, [this.#queue.id, encodeErrorText(error)]);
      return;
    }
    const text =
      `WITH works AS (UPDATE SCHEMA.queue SET forward_error = NULL WHERE id = $1 AND forward_error IS NOT NULL)
      UPDATE SCHEMA.retry r SET failures = r.failures + 1, forward_error = $3,
      delayed_until_ms = ${databaseNowSql} + ${delayAfter("r.failures")} WHERE ${pending} AND r.seq = $2`;
    await this.#queue.run("queue_letter_failed", text, [this.#queue.id, seq, encodeErrorText(error)]);
  }

  errorOf(row: MessageRow): string | null {
    return textInRow(row["forward_error"]) ?? textInRow(row["sink_error"]);
  }
}

/** Operator commands on stored messages. Each call runs inside a transaction of its caller. */
import type { MessageChange } from "../message_life.ts";
import {
  changedLife,
  keepsContent,
  messageStateInRow,
  numberOfId,
  stateNumbers,
  unchangedState,
} from "../message_row.ts";
import type { RetryDatabase, SqlRow } from "./retry_database.ts";
import { BatonError } from "../../../base/errors.ts";
import { isDamageError } from "../../../base/storage/checksum_table.ts";
import type { ChangeRefusal, MessageConditions, MessageFilter } from "../store_methods.ts";
import { tables } from "./retry_tables.ts";
import type { RetryEngine } from "./retry_engine.ts";
import { changesMax } from "../retry_store_limits.ts";
import type { ClaimedMessage, StoredMessage } from "../stored_message.ts";

export class RetryAdmin {
  readonly #database: RetryDatabase;
  readonly #engine: RetryEngine;

  constructor(database: RetryDatabase, engine: RetryEngine) {
    this.#database = database;
    this.#engine = engine;
  }

  /** Lists messages with a larger number than `afterSeq`, the oldest first. */
  list(filter: MessageFilter, { afterSeq, max }: { readonly afterSeq: number; readonly max: number }): StoredMessage[] {
    const { where, values } = conditionOf(filter);
    const sql = `SELECT * FROM messages WHERE seq > ? AND ${where} ORDER BY seq LIMIT ?`;
    const rows = this.#database.intactRows(
      tables.messages,
      max,
      (limit) => this.#database.all(sql, afterSeq, ...values, limit),
    );
    return rows.map((row) => this.#engine.storedMessageOf(row));
  }

  /** Shows a message; head and body are missing if they are no longer stored. */
  show(id: string): (StoredMessage & Partial<Pick<ClaimedMessage, "head" | "body">>) | null {
    const row = this.#row(id);
    if (row === null) return null;
    this.#checkWhole(row);
    const hasBody = this.#database.get("SELECT 1 FROM bodies WHERE seq = ?", Number(row["seq"])) !== undefined;
    return hasBody || keepsContent(row) ? this.#engine.claimedMessageOf(row) : this.#engine.storedMessageOf(row);
  }

  /** Null: the change was made. */
  change(id: string, change: MessageChange, nowMs: number): ChangeRefusal | null {
    const row = this.#row(id);
    if (row === null) return "unknown";
    if (!tables.messages.isIntact(row)) {
      if (change !== "cancel" && change !== "purge") this.#checkWhole(row);
      this.#remove(Number(row["seq"]));
      return null;
    }
    return this.#changeRow(row, change, nowMs) ? null : unchangedState(row);
  }

  /**
   * The number of a new redrive. A redrive does not repeat a dead letter that it redrove before and that died again.
   */
  beginRedrive(): number {
    const redrives = Number(this.#database.get("SELECT redrives FROM store WHERE id = 0")?.["redrives"]) + 1;
    this.#database.changeRow(tables.store, { id: 0 }, { redrives });
    return redrives;
  }

  /**
   * Redrives up to `max` dead letters that this redrive has not redriven before. Returns their number; fewer than
   * `max`: there are no others.
   */
  redrive(number: number, filter: MessageConditions, max: number, nowMs: number): number {
    const { where, values } = conditionOf({ ...filter, states: ["dead"] });
    const sql =
      `SELECT * FROM messages WHERE state = 3 AND redriven < ? AND forwarding < 3 AND ${where} ORDER BY seq LIMIT ?`;
    const rows = this.#database.intactRows(
      tables.messages,
      Math.min(max, changesMax),
      (limit) => this.#database.all(sql, number, ...values, limit),
    );
    for (const row of rows) {
      this.#changeRow(row, "redrive", nowMs);
      this.#database.changeRow(tables.messages, { seq: Number(row["seq"]) }, { redriven: number });
    }
    return rows.length;
  }

  /** Counts the dead letters that a redrive would redrive now. */
  countRedrivable(filter: MessageConditions): number {
    const { where, values } = conditionOf({ ...filter, states: ["dead"] });
    const sql = `SELECT count(*) AS count FROM messages WHERE state = 3 AND forwarding < 3 AND ${where}`;
    return Number(this.#database.get(sql, ...values)?.["count"]);
  }

  /** Purges up to `changesMax` dead letters. Returns their number; 0: none is left. */
  purge(filter: MessageConditions, nowMs: number): number {
    const { where, values } = conditionOf({ ...filter, states: ["dead"] });
    const rows = this.#database.all(
      `SELECT * FROM messages WHERE ${where} ORDER BY seq LIMIT ?`,
      ...values,
      changesMax,
    );
    let gone = 0;
    for (const row of rows) {
      if (!tables.messages.isIntact(row)) gone += this.#remove(Number(row["seq"]));
      else if (this.#changeRow(row, "purge", nowMs)) gone++;
    }
    return gone;
  }

  setPaused(paused: boolean): void {
    this.#database.changeRow(tables.store, { id: 0 }, { paused: paused ? 1 : 0 });
  }

  isPaused(): boolean {
    return Number(this.#database.get("SELECT paused FROM store WHERE id = 0")?.["paused"]) !== 0;
  }

  /** The time when the oldest waiting message was accepted, and the next due time; null: no message waits. */
  waitingTimes(): { readonly oldestMs: number | null; readonly nextMs: number | null } {
    const first = this.#database.get("SELECT first_ms FROM messages WHERE state < 2 ORDER BY seq LIMIT 1");
    const next = this.#database.get("SELECT next_ms FROM messages WHERE state = 0 ORDER BY next_ms LIMIT 1");
    return {
      oldestMs: first === undefined ? null : Number(first["first_ms"]),
      nextMs: next === undefined ? null : Number(next["next_ms"]),
    };
  }

  /** Removes up to `changesMax` messages that ended before `beforeMs`. Returns their number. */
  forgetEnded(beforeMs: number): number {
    const rows = this.#database.all(
      "SELECT seq, state, bytes FROM messages WHERE ended_ms < ? ORDER BY ended_ms LIMIT ?",
      beforeMs,
      changesMax,
    );
    for (const row of rows) {
      this.#database.run("DELETE FROM messages WHERE seq = ?", Number(row["seq"]));
      // Done messages stay counted; a forwarded dead letter no longer counts as dead.
      if (messageStateInRow(row) === "dead") this.#engine.totals.count("dead", -1, 0);
    }
    return rows.length;
  }

  #row(id: string): SqlRow | null {
    const seq = numberOfId(id, this.#engine.storeName);
    return seq === null ? null : this.#database.get("SELECT * FROM messages WHERE seq = ?", seq) ?? null;
  }

  /** Throws BAD_DATA. */
  #checkWhole(row: SqlRow): void {
    if (this.#database.intactOrNull(tables.messages, row) !== null) return;
    const what = `message ${this.#engine.idOf(Number(row["seq"]))}`;
    throw new BatonError("BAD_DATA", `The message store in ${this.#database.folder} is damaged: ${what}`);
  }

  /** Removes a damaged message for an operator. Returns the number of removed rows. */
  #remove(seq: number): number {
    const drop = () => this.#database.run("DELETE FROM messages WHERE seq = ?", seq);
    let gone: number;
    try {
      gone = drop();
    } catch (error) {
      if (!isDamageError(error)) throw error;
      this.#database.run("REINDEX messages"); // the indexes differ from the row
      gone = drop();
    }
    this.#database.run("DELETE FROM bodies WHERE seq = ?", seq);
    this.#database.run("DELETE FROM forward_failures WHERE seq = ?", seq);
    this.#engine.totals.recount();
    return gone;
  }

  #changeRow(row: SqlRow, change: MessageChange, nowMs: number): boolean {
    const next = changedLife(row, change, nowMs);
    if (next === null) return false;
    this.#engine.writeLife(row, next, { nowMs });
    return true;
  }
}

function conditionOf({ states, key, reason, error }: MessageFilter): { where: string; values: (string | number)[] } {
  const numbers = states.map((state) => stateNumbers[state]).join(", ");
  const parts = [`state IN (${numbers})`];
  const values: (string | number)[] = [];
  for (const [sql, value] of [["key = ?", key], ["reason = ?", reason], ["instr(error, ?) > 0", error]] as const) {
    if (value === undefined) continue;
    parts.push(sql);
    values.push(value);
  }
  return { where: parts.join(" AND "), values };
}

/** Reads and writes the rows of messages in a folder. The caller of each method has started a transaction. */
import { isSqliteDamageError } from "../../../base/storage/checksum_table.ts";
import { DamageError } from "../../../base/storage/damage.ts";
import type { DatabaseRow, SqlValue } from "../../../base/storage/sql_row.ts";
import { type MessageLife, type MessageState, messageStates } from "../message_life.ts";
import { forwardingOfLife, keepsContent, messageStateInRow, stateNumbers, statesWithBody } from "../message_row.ts";
import type { FoundMessage, MessageContent, MessageLifeChange, MessageRows, NewRow, RowQuery } from "../retry_rows.ts";
import { errorCharsMax, operatorChangesMax } from "../retry_store_limits.ts";
import type { DeadLetterCounts, MessageConditions, MessageFilter, RetryOrder } from "../store_methods.ts";
import type { MessageHead, NewLetters, StateTotals } from "../stored_message.ts";
import { canBeTried, countDamaged } from "./due_messages.ts";
import type { RetryDatabase, SqlRow } from "./retry_database.ts";
import { sqliteRetryTables } from "./retry_tables.ts";

export class SqliteMessages implements MessageRows {
  readonly #database: RetryDatabase;
  readonly #key: string;
  readonly #letters: NewLetters;
  readonly #keyOrdering: KeyOrdering;
  readonly #totals: RetryTotals;

  constructor(database: RetryDatabase, { key, letters }: { readonly key: string; readonly letters: NewLetters }) {
    this.#database = database;
    this.#key = key;
    this.#letters = letters;
    this.#keyOrdering = new KeyOrdering(database);
    this.#totals = new RetryTotals(database);
  }

  row(seq: number): SqlRow | null {
    return this.#database.get("SELECT * FROM messages WHERE seq = ?", seq) ?? null;
  }

  find({ afterSeq, max, redrive, withDamaged = false, ...filter }: RowQuery): SqlRow[] {
    const { where, values } = conditionOf(filter);
    const redrivable = redrive === undefined ? "" : "AND forwarding < 3 AND redriven < ?";
    if (redrive !== undefined) values.push(redrive);
    const sql = `SELECT * FROM messages WHERE seq > ? AND ${where} ${redrivable} ORDER BY seq LIMIT ?`;
    const read = (limit: number) => this.#database.all(sql, afterSeq, ...values, limit);
    return withDamaged ? read(max) : this.#database.intactRows(sqliteRetryTables.messages, max, read);
  }

  read(seqs: readonly number[]): FoundMessage[] {
    return seqs.flatMap((seq) => {
      const row = this.row(seq);
      if (row === null) return [];
      const isIntact = this.#database.intactOrNull(sqliteRetryTables.messages, row) !== null;
      const content = !isIntact
        ? `message ${this.#key}-${seq} is damaged`
        : keepsContent(row)
        ? this.contentOf(seq)
        : null;
      return [{ row, content }];
    });
  }

  /** Returns the content of a message, or a sentence that describes its damage. */
  contentOf(seq: number): MessageContent | string {
    const { bodies } = sqliteRetryTables;
    const { damage } = this.#database;
    const what = `the content of message ${this.#key}-${seq}`;
    const sql = `SELECT ${bodies.allColumns} FROM bodies WHERE seq = ?`;
    try {
      const row = damage.detectDamage(what, () => this.#database.get(sql, seq));
      if (row === undefined) throw damage.reportDamage(`${what} is missing`);
      if (!bodies.isIntact(row)) throw damage.reportDamage(`${what} is damaged`);
      return { head: JSON.parse(String(row["head"])) as MessageHead, body: row["body"] as Uint8Array };
    } catch (error) {
      if (error instanceof DamageError) return error.message;
      throw error;
    }
  }

  isIntact(row: DatabaseRow): boolean {
    return sqliteRetryTables.messages.isIntact(row as SqlRow);
  }

  used(): StateTotals {
    const totals = this.#totals.all();
    const sum = (what: keyof StateTotals) => statesWithBody.reduce((all, state) => all + totals[state][what], 0);
    return { count: sum("count"), bytes: sum("bytes") };
  }

  insert(rows: readonly NewRow[], nowMs: number): number {
    const first = this.#database.nextNumber("messages");
    const sums = new Map<MessageState, StateTotals>();
    for (const [at, { message: { head, body, key, tried }, life }] of rows.entries()) {
      const { state } = life;
      const seq = first + at;
      this.#database.insert(sqliteRetryTables.messages, {
        seq,
        ...this.#columnsOf(life, nowMs),
        key,
        first_ms: nowMs,
        last_ms: tried === null ? null : nowMs,
        error: tried === null ? null : tried.error.slice(0, errorCharsMax),
        owner: null,
        redriven: 0,
        forward_offset: null,
        bytes: body.byteLength,
        is_next: isOpen(state) ? this.#keyOrdering.initialMark(key) : 0,
      });
      if (statesWithBody.includes(state)) {
        this.#database.insert(sqliteRetryTables.bodies, { seq, head: JSON.stringify(head), body });
      }
      const { count, bytes } = sums.get(state) ?? { count: 0, bytes: 0 };
      sums.set(state, { count: count + 1, bytes: bytes + body.byteLength });
    }
    for (const [state, { count, bytes }] of sums) this.#totals.count(state, count, bytes);
    return first;
  }

  /**
   * Writes changes to messages. Does not compare the rows with the expected ones, because they were read in the same
   * transaction.
   */
  write(changes: readonly MessageLifeChange[]): number {
    for (const { row, next, nowMs, tried, damage, redrive } of changes) {
      const error = tried === undefined ? damage : tried.error;
      const before = row as SqlRow;
      this.changeRow(before, next, nowMs, {
        owner: null,
        error: error === undefined ? before["error"] ?? null : error?.slice(0, errorCharsMax) ?? null,
        last_ms: tried === undefined ? before["last_ms"] ?? null : nowMs,
        redriven: redrive ?? before["redriven"] ?? 0,
      });
    }
    return changes.length;
  }

  /** Writes the new state of a message, and updates the totals. Removes the body if it is no longer needed. */
  changeRow(
    row: SqlRow,
    next: MessageLife,
    nowMs: number,
    { owner, error, last_ms, redriven }: Readonly<Record<"owner" | "error" | "last_ms" | "redriven", SqlValue>>,
  ): void {
    const seq = Number(row["seq"]);
    const bytes = Number(row["bytes"]);
    const before = messageStateInRow(row);
    const columns = { ...this.#columnsOf(next, nowMs), owner, error, last_ms, redriven };
    this.#database.changeRow(sqliteRetryTables.messages, { seq }, columns);
    if (before === next.state) return;
    const key = row["key"] as string | null;
    if (isOpen(before) && !isOpen(next.state)) this.#keyOrdering.passMarkOn(seq, key);
    else if (!isOpen(before) && isOpen(next.state)) this.#keyOrdering.restoreMark(seq, key);
    this.#totals.count(before, -1, -bytes);
    this.#totals.count(next.state, 1, bytes);
    if (!statesWithBody.includes(next.state)) this.#database.run("DELETE FROM bodies WHERE seq = ?", seq);
    if (before === "dead") this.#database.run("DELETE FROM forward_failures WHERE seq = ?", seq);
  }

  /** Records that a dead letter has left the store, and removes its body. */
  noteForwarded(row: SqlRow, nowMs: number): void {
    const seq = Number(row["seq"]);
    this.#database.changeRow(sqliteRetryTables.messages, { seq }, { forwarding: 3, ended_ms: nowMs, bytes: 0 });
    this.#database.run("DELETE FROM bodies WHERE seq = ?", seq);
    this.#totals.count("dead", 0, -Number(row["bytes"]));
  }

  remove(seq: number): void {
    const drop = () => this.#database.run("DELETE FROM messages WHERE seq = ?", seq);
    try {
      drop();
    } catch (error) {
      if (!isSqliteDamageError(error)) throw error;
      this.#database.run("REINDEX messages"); // the indexes do not agree with the row
      drop();
    }
    this.#database.run("DELETE FROM bodies WHERE seq = ?", seq);
    this.#database.run("DELETE FROM forward_failures WHERE seq = ?", seq);
    this.#totals.recount();
  }

  totals(): Record<MessageState, StateTotals> {
    return this.#totals.all();
  }

  startRedrive(): number {
    const redrives = Number(this.#database.get("SELECT redrives FROM store WHERE id = 0")?.["redrives"]) + 1;
    this.#database.changeRow(sqliteRetryTables.store, { id: 0 }, { redrives });
    return redrives;
  }

  countDeadLetters(filter: MessageConditions): DeadLetterCounts {
    const { where, values } = conditionOf({ ...filter, states: ["dead"] });
    const sql =
      `SELECT sum(forwarding < 3) AS redrivable, sum(forwarding = 3) AS forwarded FROM messages WHERE ${where}`;
    const row = this.#database.get(sql, ...values);
    return { redrivable: Number(row?.["redrivable"]), forwarded: Number(row?.["forwarded"]) };
  }

  setPaused(isPaused: boolean): void {
    this.#database.changeRow(sqliteRetryTables.store, { id: 0 }, { paused: isPaused ? 1 : 0 });
  }

  isPaused(): boolean {
    return Number(this.#database.get("SELECT paused FROM store WHERE id = 0")?.["paused"]) !== 0;
  }

  waitingTimes(): { readonly oldestMs: number | null; readonly nextMs: number | null } {
    const first = this.#database.get("SELECT first_ms FROM messages WHERE state < 2 ORDER BY seq LIMIT 1");
    const next = this.#database.get("SELECT next_ms FROM messages WHERE state = 0 ORDER BY next_ms LIMIT 1");
    return {
      oldestMs: first === undefined ? null : Number(first["first_ms"]),
      nextMs: next === undefined ? null : Number(next["next_ms"]),
    };
  }

  forget(beforeMs: number): number {
    const sql = "SELECT seq, state FROM messages WHERE ended_ms < ? ORDER BY ended_ms LIMIT ?";
    const rows = this.#database.all(sql, beforeMs, operatorChangesMax);
    for (const row of rows) {
      this.#database.run("DELETE FROM messages WHERE seq = ?", Number(row["seq"]));
      // The totals keep a removed message that was done, but not a forwarded dead letter.
      if (messageStateInRow(row) === "dead") this.#totals.count("dead", -1, 0);
    }
    return rows.length;
  }

  canBeTried(order: RetryOrder): boolean {
    return canBeTried(this.#database, order);
  }

  countDamaged(): number {
    return countDamaged(this.#database);
  }

  #columnsOf(life: MessageLife, nowMs: number) {
    const { state, tries, crashes, fence, sinceMs, nextAtMs, reason } = life;
    return {
      state: stateNumbers[state],
      tries,
      crashes,
      fence,
      reason,
      since_ms: sinceMs,
      next_ms: nextAtMs,
      ended_ms: statesWithBody.includes(state) ? null : nowMs,
      forwarding: forwardingOfLife(life, this.#letters),
    };
  }
}

function isOpen(state: MessageState): boolean {
  return state === "waiting" || state === "in_flight";
}

/**
 * Returns the SQL condition for a filter. A condition for a single state lets the database use the index of that state.
 */
function conditionOf({ states, key, reason, error }: MessageFilter): { where: string; values: (string | number)[] } {
  const numbers = states.map((state) => stateNumbers[state]);
  const parts = [numbers.length === 1 ? `state = ${numbers[0]}` : `state IN (${numbers.join(", ")})`];
  const values: (string | number)[] = [];
  for (const [sql, value] of [["key = ?", key], ["reason = ?", reason], ["instr(error, ?) > 0", error]] as const) {
    if (value === undefined) continue;
    parts.push(sql);
    values.push(value);
  }
  return { where: parts.join(" AND "), values };
}

const isOpenWithKey = "state < 2 AND key IS NOT NULL AND key = ?";

/**
 * Orders messages with the same key: one open message is next, and the others wait. The column `is_next` marks the next
 * message, so that a claim need not read all messages that wait.
 */
class KeyOrdering {
  readonly #database: RetryDatabase;

  constructor(database: RetryDatabase) {
    this.#database = database;
  }

  /** Returns the mark of a new message: 1 if it is next, 0 if it waits. */
  initialMark(key: string | null): number {
    return key === null ||
        this.#database.get(`SELECT 1 FROM messages WHERE ${isOpenWithKey} LIMIT 1`, key) === undefined
      ? 1
      : 0;
  }

  /** Passes the mark of a closed message to the oldest open message with its key. */
  passMarkOn(seq: number, key: string | null): void {
    if (key === null || this.#database.get("SELECT is_next FROM messages WHERE seq = ?", seq)?.["is_next"] !== 1) {
      return;
    }
    const next = this.#database.get(`SELECT min(seq) AS seq FROM messages WHERE ${isOpenWithKey}`, key)?.["seq"] ??
      null;
    if (next !== null) this.#setNext(Number(next), 1);
  }

  /**
   * Gives a message that waits again its place in the order. It comes before newer messages, but not before a message
   * in flight.
   */
  restoreMark(seq: number, key: string | null): void {
    // A message that was dead when it was stored has no mark.
    if (key === null) return this.#setNext(seq, 1);
    const holder = this.#database.get(
      `SELECT seq, state FROM messages WHERE ${isOpenWithKey} AND is_next = 1 AND seq <> ?`,
      key,
      seq,
    );
    const yields = holder !== undefined && holder["state"] === 0 && Number(holder["seq"]) > seq;
    if (yields) this.#setNext(Number(holder["seq"]), 0);
    this.#setNext(seq, holder === undefined || yields ? 1 : 0);
  }

  /** Changes the mark. Does not change a damaged message: messages behind it wait until an operator cancels it. */
  #setNext(seq: number, isNext: number): void {
    try {
      this.#database.changeRow(sqliteRetryTables.messages, { seq }, { is_next: isNext });
    } catch (error) {
      if (!(error instanceof DamageError)) throw error;
    }
  }
}

/**
 * Counts the messages in each state, and the bytes of their bodies. Every change of a message updates these totals in
 * its transaction.
 */
class RetryTotals {
  readonly #database: RetryDatabase;

  constructor(database: RetryDatabase) {
    this.#database = database;
  }

  all(): Record<MessageState, StateTotals> {
    const found = new Map(this.#database.all("SELECT * FROM totals").map((row) => [Number(row["state"]), row]));
    const of = (state: MessageState): StateTotals => {
      const stored = found.get(stateNumbers[state]);
      const isDamaged = stored !== undefined && this.#database.intactOrNull(sqliteRetryTables.totals, stored) === null;
      const row = isDamaged ? this.#countRows(stateNumbers[state]) : stored;
      return { count: Number(row?.["count"] ?? 0), bytes: Number(row?.["bytes"] ?? 0) };
    };
    return Object.fromEntries(messageStates.map((state) => [state, of(state)])) as Record<MessageState, StateTotals>;
  }

  count(state: MessageState, count: number, bytes: number): void {
    const isKept = statesWithBody.includes(state);
    const number = stateNumbers[state];
    const row = this.#database.get(`SELECT ${sqliteRetryTables.totals.allColumns} FROM totals WHERE state = ?`, number);
    const known = row !== undefined && this.#database.intactOrNull(sqliteRetryTables.totals, row) !== null;
    const before = known ? row : row === undefined ? null : this.#countedBefore(number, count, bytes);
    this.#database.replace(sqliteRetryTables.totals, {
      state: number,
      count: Number(before?.["count"] ?? 0) + count,
      bytes: Number(before?.["bytes"] ?? 0) + (isKept ? bytes : 0),
    });
  }

  /**
   * Returns the totals before a change, counted from the messages, because the stored row is damaged. The counted
   * messages already include the change.
   */
  #countedBefore(state: number, count: number, bytes: number): SqlRow {
    const now = this.#countRows(state);
    return { count: Number(now["count"]) - count, bytes: Number(now["bytes"]) - bytes };
  }

  #countRows(state: number): SqlRow {
    const sql = "SELECT count(*) AS count, coalesce(sum(bytes), 0) AS bytes FROM messages WHERE state = ?";
    return this.#database.get(sql, state) ?? {};
  }

  /** Counts all messages that have a body, and replaces the totals of their states. */
  recount(): void {
    for (const state of statesWithBody) {
      const number = stateNumbers[state];
      const { count, bytes } = this.#countRows(number);
      this.#database.replace(sqliteRetryTables.totals, { state: number, count: Number(count), bytes: Number(bytes) });
    }
  }
}

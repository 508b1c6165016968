/**
 * Operations of the store on its messages. Each call runs inside a transaction of its caller. message_life.ts decides
 * the state of a message; the engine reads and writes it. Limits are checked before anything is written, so that a
 * refusal leaves the transaction unchanged.
 */
import { BatonError } from "../../../base/errors.ts";
import {
  lifeAfterClaim,
  lifeAfterCrash,
  lifeAfterDamage,
  lifeAfterReturn,
  lifeAfterTry,
  type MessageLife,
  type MessageState,
  newLife,
} from "../message_life.ts";
import {
  isPendingLetter,
  messageLifeInRow,
  messageOfRow,
  messageStateInRow,
  stateNumbers,
  statesWithBody,
} from "../message_row.ts";
import { dueMessages, nextDueMs } from "./due_messages.ts";
import type { AcceptedMessage, Claim, ClaimOrder, TryReport } from "../store_methods.ts";
import { DamageError } from "../../../base/storage/damage.ts";
import { KeyOrdering } from "./key_ordering.ts";
import type { RetryDatabase, SqlRow } from "./retry_database.ts";
import { tables } from "./retry_tables.ts";
import type { StoreRules } from "../store_rules.ts";
import { RetryCapacity, RetryTotals } from "./retry_totals.ts";
import { checkMessageSizes, errorCharsMax, messageBytes } from "../retry_store_limits.ts";
import {
  type ClaimedMessage,
  forwardStates,
  type MessageHead,
  type NewMessage,
  type StateTotals,
  type StoredMessage,
} from "../stored_message.ts";

type MessageContent = Pick<ClaimedMessage, "head" | "body">;

export class RetryEngine {
  readonly #database: RetryDatabase;
  readonly #rules: StoreRules;
  readonly #random: () => number;
  readonly #name: string;
  readonly #keyOrdering: KeyOrdering;
  readonly totals: RetryTotals;
  readonly capacity: RetryCapacity;

  constructor(database: RetryDatabase, rules: StoreRules, random: () => number = Math.random) {
    this.#database = database;
    this.#rules = rules;
    this.#random = random;
    this.#keyOrdering = new KeyOrdering(database);
    this.totals = new RetryTotals(database);
    this.capacity = new RetryCapacity(database, this.totals, rules);
    const row = database.get(`SELECT ${tables.store.allColumns} FROM store WHERE id = 0`) ?? {};
    this.#name = String(database.damage.requireIntactRow(tables.store, row, "of this folder")["name"]);
  }

  get storeName(): string {
    return this.#name;
  }

  /** Stores all or none of the messages and returns their ids. Throws STORE_FULL, BAD_DATA. */
  accept(messages: readonly NewMessage[], nowMs: number): AcceptedMessage[] {
    let bytes = 0;
    let storedBytes = 0;
    for (const message of messages) {
      storedBytes += checkMessageSizes(message) + messageBytes;
      bytes += message.body.byteLength;
    }
    this.capacity.requireRoom(messages.length, bytes, storedBytes);
    const sums = new Map<MessageState, StateTotals>();
    const stored = messages.map((message) => {
      const life = newLife(message.tried, this.#rules, nowMs, this.#random);
      const { count, bytes } = sums.get(life.state) ?? { count: 0, bytes: 0 };
      sums.set(life.state, { count: count + 1, bytes: bytes + message.body.byteLength });
      return { id: this.idOf(this.#insert(message, life, nowMs)), life };
    });
    for (const [state, { count, bytes }] of sums) this.totals.count(state, count, bytes);
    return stored;
  }

  #insert({ head, body, key, tried }: NewMessage, life: MessageLife, nowMs: number): number {
    const { state } = life;
    const seq = this.#database.nextNumber("messages");
    this.#database.insert(tables.messages, {
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
    if (statesWithBody.includes(state)) this.#database.insert(tables.bodies, { seq, head: JSON.stringify(head), body });
    return seq;
  }

  /** Registers a process that will try messages and returns its number. */
  registerProcessor(boot: string, endMs: number, pid: number, nowMs: number): number {
    const id = this.#database.nextNumber("processors");
    this.#database.insert(tables.processors, { id, boot, end_ms: endMs, pid, since_ms: nowMs });
    return id;
  }

  /** Extends the lease of a process. False: the lease was given up, and its messages have other owners. */
  renewProcessor(owner: number, endMs: number): boolean {
    try {
      return this.#database.changeRow(tables.processors, { id: owner }, { end_ms: endMs });
    } catch (error) {
      if (error instanceof DamageError) return false; // other processes treat the lease as ended, too
      throw error;
    }
  }

  /** Removes a process that has nothing in flight. */
  removeProcessor(owner: number): void {
    this.#database.run(
      "DELETE FROM processors WHERE id = ? AND NOT EXISTS (SELECT 1 FROM messages WHERE state = 1 AND owner = ?)",
      owner,
      owner,
    );
  }

  /**
   * Removes processes whose lease ended `graceMs` ago or before the last boot; their messages in flight have crashed.
   * Returns the number of these messages.
   */
  reclaim({ boot, bootMs, graceMs, nowMs }: {
    readonly boot: string;
    readonly bootMs: number;
    readonly graceMs: number;
    readonly nowMs: number;
  }): number {
    let count = 0;
    for (const row of this.#database.all(`SELECT ${tables.processors.allColumns} FROM processors`)) {
      const isWhole = this.#database.intactOrNull(tables.processors, row) !== null;
      if (isWhole && row["boot"] === boot && bootMs <= Number(row["end_ms"]) + graceMs) continue;
      const owner = Number(row["id"]);
      for (const message of this.#database.all("SELECT * FROM messages WHERE state = 1 AND owner = ?", owner)) {
        if (this.#database.intactOrNull(tables.messages, message) === null) continue;
        const next = lifeAfterCrash(messageLifeInRow(message), this.#rules, nowMs, this.#random);
        if (next === null) continue;
        this.writeLife(message, next, { nowMs, error: "the processor died during the try", triedMs: nowMs });
        count++;
      }
      this.#database.run("DELETE FROM processors WHERE id = ?", owner);
    }
    return count;
  }

  /**
   * Claims due messages, each under a new fencing number. Throws LOCK_LOST if the lease of the process was given up.
   */
  claim({ owner, ...due }: ClaimOrder): Claim {
    const { nowMs } = due;
    const isPaused = Number(this.#database.get("SELECT paused FROM store WHERE id = 0")?.["paused"]) !== 0;
    const isRegistered = this.#database.get("SELECT 1 FROM processors WHERE id = ?", owner) !== undefined;
    if (!isRegistered) {
      throw new BatonError(
        "LOCK_LOST",
        "The lease of this processor expired, and another process took its messages back",
      );
    }
    const messages = isPaused ? [] : dueMessages(this.#database, due).flatMap((row) => {
      const next = lifeAfterClaim(messageLifeInRow(row), nowMs);
      const content = next === null ? null : this.#contentOrKill(row, nowMs);
      if (next === null || content === null) return [];
      this.writeLife(row, next, { nowMs, owner });
      const claimed = { ...row, state: stateNumbers.in_flight, fence: next.fence };
      return [{ ...this.storedMessageOf(claimed), ...content }];
    });
    return { messages, nextMs: nextDueMs(this.#database, due) };
  }

  /** The content of a message. Null: it is damaged, and the message is a dead letter now, so that it is not tried. */
  #contentOrKill(row: SqlRow, nowMs: number): MessageContent | null {
    const content = this.#contentOrDamage(row);
    if (typeof content !== "string") return content;
    const next = lifeAfterDamage(messageLifeInRow(row));
    if (next !== null) this.writeLife(row, next, { nowMs, error: content });
    return null;
  }

  /** The damage of a message as a sentence; null: it is intact. */
  damageOf(row: SqlRow): string | null {
    const content = this.#contentOrDamage(row);
    return typeof content === "string" ? content : null;
  }

  /** The content of a message, or its damage as a sentence. */
  #contentOrDamage(row: SqlRow): MessageContent | string {
    const seq = Number(row["seq"]);
    try {
      this.#database.damage.requireIntactRow(tables.messages, row, `of this store (${this.idOf(seq)})`);
      return this.#readContent(seq);
    } catch (error) {
      if (error instanceof DamageError) return error.message;
      throw error;
    }
  }

  /** Throws DamageError. */
  #readContent(seq: number): MessageContent {
    const { bodies } = tables;
    const { damage } = this.#database;
    const what = `the content of message ${this.idOf(seq)}`;
    const sql = `SELECT ${bodies.allColumns} FROM bodies WHERE seq = ?`;
    const row = damage.detectDamage(what, () => this.#database.get(sql, seq));
    if (row === undefined) throw damage.reportDamage(`${what} is missing`);
    if (!bodies.isIntact(row)) throw damage.reportDamage(`${what} is damaged`);
    return { head: JSON.parse(String(row["head"])) as MessageHead, body: row["body"] as Uint8Array };
  }

  /** Records the result of a try. Null: the message has another owner now, and nothing was changed. */
  finish({ seq, fence, owner, end, error, nowMs }: TryReport): MessageLife | null {
    const row = this.#database.get("SELECT * FROM messages WHERE seq = ?", seq);
    if (row === undefined || Number(row["owner"]) !== owner) return null;
    if (this.#database.intactOrNull(tables.messages, row) === null) return null;
    const life = messageLifeInRow(row);
    const next = end === null
      ? lifeAfterReturn(life, fence, nowMs)
      : lifeAfterTry(life, fence, end, { rules: this.#rules, nowMs, random: this.#random });
    if (next === null) return null;
    this.writeLife(row, next, end === null ? { nowMs } : { nowMs, error, triedMs: nowMs });
    return next;
  }

  /** Writes the new state of a message and counts it. Removes the body when it is no longer needed. */
  writeLife(row: SqlRow, next: MessageLife, { nowMs, owner = null, error, triedMs }: {
    readonly nowMs: number;
    readonly owner?: number | null;
    readonly error?: string | null;
    readonly triedMs?: number;
  }): void {
    const seq = Number(row["seq"]);
    const bytes = Number(row["bytes"]);
    const before = messageStateInRow(row);
    this.#database.changeRow(tables.messages, { seq }, {
      ...this.#columnsOf(next, nowMs),
      error: error === undefined ? row["error"] ?? null : error?.slice(0, errorCharsMax) ?? null,
      last_ms: triedMs ?? row["last_ms"] ?? null,
      owner,
    });
    if (before === next.state) return;
    const key = row["key"] as string | null;
    if (isOpen(before) && !isOpen(next.state)) this.#keyOrdering.passMarkOn(seq, key);
    else if (!isOpen(before) && isOpen(next.state)) this.#keyOrdering.restoreMark(seq, key);
    this.totals.count(before, -1, -bytes);
    this.totals.count(next.state, 1, bytes);
    if (!statesWithBody.includes(next.state)) this.#database.run("DELETE FROM bodies WHERE seq = ?", seq);
    if (before === "dead") this.#database.run("DELETE FROM forward_failures WHERE seq = ?", seq);
  }

  /**
   * Records that the dead letter has left the store, and removes its body. `isMarked`: only one that was marked as
   * being sent.
   */
  markForwarded(seq: number, nowMs: number, isMarked = true): void {
    const least = isMarked ? 2 : 1;
    const sql = "SELECT * FROM messages WHERE seq = ? AND state = 3 AND forwarding BETWEEN ? AND 2";
    const row = this.#database.get(sql, seq, least);
    if (row === undefined) return;
    this.#database.changeRow(tables.messages, { seq }, { forwarding: 3, ended_ms: nowMs, bytes: 0 });
    this.#database.run("DELETE FROM bodies WHERE seq = ?", seq);
    // The sink works again, so its error is removed, too.
    this.#database.run("DELETE FROM forward_failures WHERE seq IN (0, ?)", seq);
    this.totals.count("dead", 0, -Number(row["bytes"]));
  }

  claimedMessageOf(row: SqlRow): ClaimedMessage {
    try {
      return { ...this.storedMessageOf(row), ...this.#readContent(Number(row["seq"])) };
    } catch (error) {
      if (!(error instanceof DamageError)) throw error;
      throw new BatonError("BAD_DATA", `The message store in ${this.#database.folder} is damaged: ${error.message}`);
    }
  }

  storedMessageOf(row: SqlRow): StoredMessage {
    const seq = Number(row["seq"]);
    return messageOfRow(row, {
      id: this.idOf(seq),
      forwardError: isPendingLetter(row) ? this.#forwardError(seq) : null,
    });
  }

  /** The error of this dead letter, or else the error of the sink. */
  #forwardError(seq: number): string | null {
    const sql = "SELECT error FROM forward_failures WHERE seq IN (0, ?) ORDER BY seq DESC LIMIT 1";
    return this.#database.get(sql, seq)?.["error"] as string | undefined ?? null;
  }

  idOf(seq: number): string {
    return `${this.#name}-${seq}`;
  }

  /** The columns of `messages` that follow from the state. */
  #columnsOf({ state, tries, crashes, fence, sinceMs, nextAtMs, reason }: MessageLife, nowMs: number) {
    const isPending = state === "dead" && reason !== "damaged" && this.#rules.forwards;
    return {
      state: stateNumbers[state],
      tries,
      crashes,
      fence,
      reason,
      since_ms: sinceMs,
      next_ms: nextAtMs,
      ended_ms: statesWithBody.includes(state) ? null : nowMs,
      forwarding: forwardStates.indexOf(isPending ? "pending" : "none"),
    };
  }
}

function isOpen(state: MessageState): boolean {
  return state === "waiting" || state === "in_flight";
}

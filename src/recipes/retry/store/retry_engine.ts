/**
 * What the store does with its messages, each call inside a transaction that its caller has begun. What becomes of a message is
 * for message_life.ts to say; here it is looked up and written down. Limits are looked at before anything is written, so
 * that a refusal leaves the transaction as it was.
 */
import { BatonError } from "../../../errors.ts";
import {
  accepted,
  crashed,
  type DeathReason,
  givenBack,
  type LifeRules,
  type MessageLife,
  type MessageState,
  messageStates,
  taken,
  tried,
  type TryEnd,
} from "../message_life.ts";
import { dueMessages, type DueOptions, nextDueMs } from "./due_messages.ts";
import { KeyTurns } from "./key_turns.ts";
import type { RetryDatabase, SqlRow } from "./retry_database.ts";
import { bodyBytesMax, errorCharsMax, headBytesMax, keyBytesMax } from "./store_limits.ts";
import {
  type ClaimedMessage,
  type LetterState,
  letterStates,
  type MessageHead,
  type NewMessage,
  type StoredMessage,
  type Totals,
} from "./stored_message.ts";

export interface StoreRules extends LifeRules {
  /** Dead letters have another place to go: one that dies is owed there. */
  readonly sendsLetters: boolean;
  /** What waits, is in flight or is dead may take so much, in bodies. */
  readonly maxBytes: number;
  readonly maxMessages: number;
}

export interface ClaimOrder extends DueOptions {
  readonly owner: number;
}

export interface Claim {
  readonly messages: readonly ClaimedMessage[];
  /** When the next one is due, later than now; null: none is known. */
  readonly nextMs: number | null;
  readonly isPaused: boolean;
}

export interface TryReport {
  readonly seq: number;
  readonly fence: number;
  readonly owner: number;
  /** Null: it was never begun. */
  readonly end: TryEnd | null;
  readonly error: string | null;
  readonly nowMs: number;
}

/** Messages in these states are kept whole, and count towards the limits. */
const kept: readonly MessageState[] = ["waiting", "in_flight", "dead"];
export const stateNumbers = Object.fromEntries(messageStates.map((state, at) => [state, at])) as Record<
  MessageState,
  number
>;

/** Of one process's claim, with the number of the row that says how long it lives. */
export class RetryEngine {
  readonly #database: RetryDatabase;
  readonly #rules: StoreRules;
  readonly #random: () => number;
  readonly #name: string;
  readonly #turns: KeyTurns;

  constructor(database: RetryDatabase, rules: StoreRules, random: () => number = Math.random) {
    this.#database = database;
    this.#rules = rules;
    this.#random = random;
    this.#turns = new KeyTurns(database);
    this.#name = String(database.get("SELECT name FROM store WHERE id = 0")?.["name"]);
  }

  get storeName(): string {
    return this.#name;
  }

  /** Takes them in, all or none of them, and gives their ids. Throws STORE_FULL, BAD_DATA. */
  accept(messages: readonly NewMessage[], nowMs: number): { readonly id: string; readonly life: MessageLife }[] {
    let bytes = 0;
    for (const message of messages) {
      checkSizes(message);
      bytes += message.body.byteLength;
    }
    this.#checkRoom(messages.length, bytes);
    const sums = new Map<MessageState, Totals>();
    const stored = messages.map((message) => {
      const life = accepted(message.tried, this.#rules, nowMs, this.#random);
      const { count, bytes } = sums.get(life.state) ?? { count: 0, bytes: 0 };
      sums.set(life.state, { count: count + 1, bytes: bytes + message.body.byteLength });
      return { id: this.idOf(this.#insert(message, life, nowMs)), life };
    });
    for (const [state, { count, bytes }] of sums) this.count(state, count, bytes);
    return stored;
  }

  #insert({ head, body, key, tried }: NewMessage, life: MessageLife, nowMs: number): number {
    const { state, tries, crashes, fence, sinceMs, nextAtMs, reason } = life;
    const { seq } = this.#database.run(
      `INSERT INTO messages (state, key, tries, crashes, fence, first_ms, since_ms, last_ms, next_ms, ended_ms, reason,
        error, owner, redriven, letter, bytes, turn) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, 0, ?, ?, ?)`,
      stateNumbers[state],
      key,
      tries,
      crashes,
      fence,
      nowMs,
      sinceMs,
      tried === null ? null : nowMs,
      nextAtMs,
      this.#endedMs(life, nowMs),
      reason,
      tried === null ? null : tried.error.slice(0, errorCharsMax),
      this.#letterOf(life),
      body.byteLength,
      isOpen(state) ? this.#turns.ofNew(key) : 0,
    );
    if (kept.includes(state)) {
      this.#database.run("INSERT INTO bodies (seq, head, body) VALUES (?, ?, ?)", seq, JSON.stringify(head), body);
    }
    return seq;
  }

  /** A process that will try messages; its number. */
  register(boot: string, endMs: number, pid: number, nowMs: number): number {
    const sql = "INSERT INTO processors (boot, end_ms, pid, since_ms) VALUES (?, ?, ?, ?)";
    return this.#database.run(sql, boot, endMs, pid, nowMs).seq;
  }

  /** Its lease ends later from now on. False: it was given up meanwhile, and what it had is others'. */
  renew(owner: number, endMs: number): boolean {
    return this.#database.run("UPDATE processors SET end_ms = ? WHERE id = ?", endMs, owner).changes === 1;
  }

  /** It has nothing in flight any more. */
  leave(owner: number): void {
    this.#database.run(
      "DELETE FROM processors WHERE id = ? AND NOT EXISTS (SELECT 1 FROM messages WHERE state = 1 AND owner = ?)",
      owner,
      owner,
    );
  }

  /**
   * Gives up the processes whose lease has ended `graceMs` ago, or before the machine was started anew; what they had in flight
   * has crashed. Gives how many messages that were.
   */
  reclaim({ boot, bootMs, graceMs, nowMs }: {
    readonly boot: string;
    readonly bootMs: number;
    readonly graceMs: number;
    readonly nowMs: number;
  }): number {
    let count = 0;
    for (const row of this.#database.all("SELECT id, boot, end_ms FROM processors")) {
      if (row["boot"] === boot && bootMs <= Number(row["end_ms"]) + graceMs) continue;
      const owner = Number(row["id"]);
      for (const message of this.#database.all("SELECT * FROM messages WHERE state = 1 AND owner = ?", owner)) {
        const next = crashed(lifeOf(message), this.#rules, nowMs, this.#random);
        if (next === null) continue;
        this.write(message, next, { nowMs, error: "the process that tried it died", triedMs: nowMs });
        count++;
      }
      this.#database.run("DELETE FROM processors WHERE id = ?", owner);
    }
    return count;
  }

  /** Takes messages that are due, each under a new fencing number. Nothing for a process whose lease was given up. */
  claim({ owner, ...due }: ClaimOrder): Claim {
    const { nowMs } = due;
    const isPaused = Number(this.#database.get("SELECT paused FROM store WHERE id = 0")?.["paused"]) !== 0;
    const isThere = this.#database.get("SELECT 1 FROM processors WHERE id = ?", owner) !== undefined;
    if (!isThere) throw new BatonError("LOCK_LOST", "The lease of this process on the messages was given up meanwhile");
    const messages = isPaused ? [] : dueMessages(this.#database, due).flatMap((row) => {
      const next = taken(lifeOf(row), nowMs);
      if (next === null) return [];
      this.write(row, next, { nowMs, owner });
      return [this.withBody({ ...row, state: stateNumbers.in_flight, fence: next.fence })];
    });
    return { messages, isPaused, nextMs: nextDueMs(this.#database, due) };
  }

  /** How a try ended. Null: the message was not this owner's any more, and nothing was changed. */
  finish({ seq, fence, owner, end, error, nowMs }: TryReport): MessageLife | null {
    const row = this.#database.get("SELECT * FROM messages WHERE seq = ?", seq);
    if (row === undefined || Number(row["owner"]) !== owner) return null;
    const life = lifeOf(row);
    const next = end === null
      ? givenBack(life, fence, nowMs)
      : tried(life, fence, end, { rules: this.#rules, nowMs, random: this.#random });
    if (next === null) return null;
    this.write(row, next, end === null ? { nowMs } : { nowMs, error, triedMs: nowMs });
    return next;
  }

  /** Writes what became of a message, and counts it. A body goes when nobody can want it any more. */
  write(row: SqlRow, next: MessageLife, { nowMs, owner = null, error, triedMs }: {
    readonly nowMs: number;
    readonly owner?: number | null;
    readonly error?: string | null;
    readonly triedMs?: number;
  }): void {
    const seq = Number(row["seq"]), bytes = Number(row["bytes"]);
    const before = stateOf(row);
    this.#database.run(
      `UPDATE messages SET state = ?, tries = ?, crashes = ?, fence = ?, since_ms = ?, next_ms = ?, ended_ms = ?, reason = ?,
        error = ?, last_ms = ?, owner = ?, letter = ? WHERE seq = ?`,
      stateNumbers[next.state],
      next.tries,
      next.crashes,
      next.fence,
      next.sinceMs,
      next.nextAtMs,
      this.#endedMs(next, nowMs),
      next.reason,
      error === undefined ? row["error"] ?? null : error?.slice(0, errorCharsMax) ?? null,
      triedMs ?? row["last_ms"] ?? null,
      owner,
      this.#letterOf(next),
      seq,
    );
    if (before === next.state) return;
    const key = row["key"] as string | null;
    if (isOpen(before) && !isOpen(next.state)) this.#turns.closed(seq, key);
    else if (!isOpen(before) && isOpen(next.state)) this.#turns.opened(seq, key);
    this.count(before, -1, -bytes);
    this.count(next.state, 1, bytes);
    if (!kept.includes(next.state)) this.#database.run("DELETE FROM bodies WHERE seq = ?", seq);
    if (before === "dead") this.#database.run("DELETE FROM letter_troubles WHERE seq = ?", seq);
  }

  /** The letter has left the store: its body goes, the row says where it went. `isMarked`: only one that was said to begin. */
  letterThere(seq: number, nowMs: number, isMarked = true): void {
    const least = isMarked ? 2 : 1;
    const sql = "SELECT * FROM messages WHERE seq = ? AND state = 3 AND letter BETWEEN ? AND 2";
    const row = this.#database.get(sql, seq, least);
    if (row === undefined) return;
    this.#database.run("UPDATE messages SET letter = 3, ended_ms = ?, bytes = 0 WHERE seq = ?", nowMs, seq);
    this.#database.run("DELETE FROM bodies WHERE seq = ?", seq);
    // The place's trouble is over as well.
    this.#database.run("DELETE FROM letter_troubles WHERE seq IN (0, ?)", seq);
    this.count("dead", 0, -Number(row["bytes"]));
  }

  withBody(row: SqlRow): ClaimedMessage {
    const stored = this.#database.get("SELECT head, body FROM bodies WHERE seq = ?", Number(row["seq"]));
    if (stored === undefined) {
      throw new BatonError(
        "IO",
        `The message store in ${this.#database.folder} has no body of ${this.idOf(Number(row["seq"]))}`,
      );
    }
    const head = JSON.parse(String(stored["head"])) as MessageHead;
    return { ...this.messageOf(row), head, body: stored["body"] as Uint8Array };
  }

  messageOf(row: SqlRow): StoredMessage {
    const seq = Number(row["seq"]), state = stateOf(row);
    return {
      seq,
      id: this.idOf(seq),
      state,
      key: row["key"] as string | null,
      tries: Number(row["tries"]),
      crashes: Number(row["crashes"]),
      fence: Number(row["fence"]),
      firstMs: Number(row["first_ms"]),
      sinceMs: Number(row["since_ms"]),
      lastMs: row["last_ms"] === null ? null : Number(row["last_ms"]),
      nextMs: state === "waiting" ? Number(row["next_ms"]) : null,
      reason: row["reason"] as DeathReason | null,
      error: row["error"] as string | null,
      letter: letterStates[Number(row["letter"])] ?? "none",
      letterError: this.#letterError(row),
      bytes: Number(row["bytes"]),
    };
  }

  /** Its own before that of all letters. */
  #letterError(row: SqlRow): string | null {
    if (stateOf(row) !== "dead" || ![1, 2].includes(Number(row["letter"]))) return null;
    const sql = "SELECT error FROM letter_troubles WHERE seq IN (0, ?) ORDER BY seq DESC LIMIT 1";
    return this.#database.get(sql, Number(row["seq"]))?.["error"] as string | undefined ?? null;
  }

  idOf(seq: number): string {
    return `${this.#name}-${seq}`;
  }

  totals(): Record<MessageState, Totals> {
    const found = new Map(this.#database.all("SELECT * FROM totals").map((row) => [Number(row["state"]), row]));
    const of = (state: MessageState): Totals => {
      const row = found.get(stateNumbers[state]);
      return { count: Number(row?.["count"] ?? 0), bytes: Number(row?.["bytes"] ?? 0) };
    };
    return Object.fromEntries(messageStates.map((state) => [state, of(state)])) as Record<MessageState, Totals>;
  }

  /** Why no message would be taken in now; null: one would, unless it is large. */
  whyFull(): string | null {
    try {
      this.#checkRoom(1, 1);
      return null;
    } catch (thrown) {
      if (thrown instanceof BatonError && thrown.code === "STORE_FULL") return thrown.message;
      throw thrown;
    }
  }

  #checkRoom(count: number, bytes: number): void {
    const totals = this.totals();
    const sum = (what: keyof Totals) => kept.reduce((all, state) => all + totals[state][what], 0);
    const { maxMessages, maxBytes } = this.#rules;
    const where = `The message store in ${this.#database.folder} is full`;
    if (sum("count") + count > maxMessages) {
      throw new BatonError(
        "STORE_FULL",
        `${where}: it has ${sum("count")} messages, and ${maxMessages} are its limit (--max-messages)`,
      );
    }
    if (sum("bytes") + bytes > maxBytes) {
      const held = `its messages take ${sum("bytes")} bytes, ${bytes} more are wanted, and ${maxBytes} are its limit`;
      throw new BatonError("STORE_FULL", `${where}: ${held} (--max-bytes)`);
    }
    // It lies in the log first, and then in the database.
    if (this.#database.roomOnDisk() < 2 * bytes) {
      const why = "its disk has no more room than is kept for what was accepted before";
      throw new BatonError("STORE_FULL", `${where}: ${why}`);
    }
  }

  count(state: MessageState, count: number, bytes: number): void {
    const isKept = kept.includes(state);
    this.#database.run(
      `INSERT INTO totals (state, count, bytes) VALUES (?, ?, ?)
        ON CONFLICT (state) DO UPDATE SET count = count + excluded.count, bytes = bytes + excluded.bytes`,
      stateNumbers[state],
      count,
      isKept ? bytes : 0,
    );
  }

  #letterOf(life: MessageLife): number {
    const letter: LetterState = life.state === "dead" && this.#rules.sendsLetters ? "owed" : "none";
    return letterStates.indexOf(letter);
  }

  #endedMs({ state }: MessageLife, nowMs: number): number | null {
    return kept.includes(state) ? null : nowMs;
  }
}

function isOpen(state: MessageState): boolean {
  return state === "waiting" || state === "in_flight";
}

export function stateOf(row: SqlRow): MessageState {
  return messageStates[Number(row["state"])] ?? "waiting";
}

export function lifeOf(row: SqlRow): MessageLife {
  return {
    state: stateOf(row),
    tries: Number(row["tries"]),
    crashes: Number(row["crashes"]),
    fence: Number(row["fence"]),
    sinceMs: Number(row["since_ms"]),
    nextAtMs: Number(row["next_ms"]),
    reason: row["reason"] as DeathReason | null,
  };
}

function checkSizes({ head, body, key }: NewMessage): void {
  const refuse = (what: string, bytes: number, max: number) => {
    throw new BatonError("BAD_DATA", `Cannot store a message whose ${what} has ${bytes} bytes: ${max} are the most`);
  };
  if (body.byteLength > bodyBytesMax) refuse("body", body.byteLength, bodyBytesMax);
  const headBytes = Buffer.byteLength(JSON.stringify(head));
  if (headBytes > headBytesMax) refuse("command line or headers", headBytes, headBytesMax);
  if (key !== null && Buffer.byteLength(key) > keyBytesMax) refuse("key", Buffer.byteLength(key), keyBytesMax);
}

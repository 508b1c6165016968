/**
 * Stores the processors in a folder, and their claims. A claim and its answer are in the same transaction, so no claim
 * is unknown. The boot clock of the machine decides when a lease ends.
 */
import { DamageError } from "../../../base/storage/damage.ts";
import { lifeAfterClaim } from "../message_life.ts";
import { messageLifeInRow, stateNumbers } from "../message_row.ts";
import type { FoundMessage, MessageLifeChange, OwnClaim, ProcessorRows } from "../retry_rows.ts";
import type { ClaimRequest, StoreMethods } from "../store_methods.ts";
import { dueMessages, nextDueMs } from "./due_messages.ts";
import type { RetryDatabase, SqlRow } from "./retry_database.ts";
import { sqliteRetryTables } from "./retry_tables.ts";
import type { SqliteMessages } from "./sqlite_messages.ts";

export class SqliteProcessors implements ProcessorRows {
  readonly #database: RetryDatabase;
  readonly #messages: SqliteMessages;

  constructor(database: RetryDatabase, messages: SqliteMessages) {
    this.#database = database;
    this.#messages = messages;
  }

  register(boot: string, endMs: number, pid: number, nowMs: number): number {
    const id = this.#database.nextNumber("processors");
    this.#database.insert(sqliteRetryTables.processors, { id, boot, end_ms: endMs, pid, since_ms: nowMs });
    return id;
  }

  renew(owner: number, endMs: number): boolean {
    try {
      return this.#database.changeRow(sqliteRetryTables.processors, { id: owner }, { end_ms: endMs });
    } catch (error) {
      if (error instanceof DamageError) return false; // other processes treat the lease as ended, too
      throw error;
    }
  }

  processorCount(boot: string, bootMs: number): number {
    return this.#readAll({ boot, bootMs, graceMs: 0 }).filter(({ isHeld }) => isHeld).length;
  }

  /** Returns all processors. `isHeld` is true for a lease that ends later than `graceMs` ago. */
  #readAll(
    { boot, bootMs, graceMs }: Pick<Parameters<StoreMethods["reclaim"]>[0], "boot" | "bootMs" | "graceMs">,
  ): { readonly id: number; readonly isHeld: boolean }[] {
    return this.#database.all(`SELECT ${sqliteRetryTables.processors.allColumns} FROM processors`).map((row) => {
      const isWhole = this.#database.intactOrNull(sqliteRetryTables.processors, row) !== null;
      const isHeld = isWhole && row["boot"] === boot && bootMs <= Number(row["end_ms"]) + graceMs;
      return { id: Number(row["id"]), isHeld };
    });
  }

  remove(owner: number): void {
    const sql = "DELETE FROM processors WHERE id = ?1 " +
      "AND NOT EXISTS (SELECT 1 FROM messages WHERE state = 1 AND owner = ?1)";
    this.#database.run(sql, owner);
  }

  take({ owner, ...due }: ClaimRequest): { found: FoundMessage[]; nextMs: number | null } | null {
    if (this.#database.get("SELECT 1 FROM processors WHERE id = ?", owner) === undefined) return null;
    const rows = this.#messages.isPaused() ? [] : dueMessages(this.#database, due);
    const found = rows.flatMap((row): FoundMessage[] => {
      const next = lifeAfterClaim(messageLifeInRow(row), due.nowMs);
      if (next === null) return [];
      const { error = null, last_ms = null, redriven = 0 } = row;
      this.#messages.changeRow(row, next, due.nowMs, { owner, error, last_ms, redriven });
      const claimed = { ...row, state: stateNumbers.in_flight, fence: next.fence };
      return [{ row: claimed, content: this.#messages.contentOf(Number(row["seq"])) }];
    });
    return { found, nextMs: nextDueMs(this.#database, due) };
  }

  writeDamaged(changes: readonly MessageLifeChange[]): void {
    this.#messages.write(changes);
  }

  unknown(): SqlRow[] {
    return [];
  }

  claimed(seq: number, owner: number): OwnClaim | null {
    const row = this.#messages.row(seq);
    if (row === null || Number(row["owner"]) !== owner) return null;
    return this.#database.intactOrNull(sqliteRetryTables.messages, row) === null ? null : { row, decided: null };
  }

  writeEnd({ decided }: OwnClaim): boolean {
    return decided !== null && this.#messages.write([decided]) > 0;
  }

  /** Returns the processors whose lease ended `graceMs` ago, or before the last boot of the machine. */
  overdue(options: Parameters<StoreMethods["reclaim"]>[0]): number[] {
    return this.#readAll(options).flatMap(({ id, isHeld }) => isHeld ? [] : [id]);
  }

  inFlight(owners: readonly number[]): SqlRow[] {
    const sql = "SELECT * FROM messages WHERE state = 1 AND owner = ?";
    return owners.flatMap((owner) => this.#database.all(sql, owner))
      .filter((row) => this.#database.intactOrNull(sqliteRetryTables.messages, row) !== null);
  }

  removeOverdue(owners: readonly number[]): void {
    for (const owner of owners) this.#database.run("DELETE FROM processors WHERE id = ?", owner);
  }
}

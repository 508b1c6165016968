/**
 * A message store in PostgreSQL, which processors on several machines share. After UNREACHABLE, LOCK_BUSY or
 * OUTCOME_UNKNOWN, each call may be repeated; but a repeated `accept` may store its messages twice.
 */
import type { DatabaseAddress } from "../../../base/postgres/database_address.ts";
import { acceptMovedDatabase, migrateDatabase } from "../../../base/postgres/database_schema.ts";
import type { connectToPrimary } from "../../../base/postgres/primary_connection.ts";
import { type Clock, systemClock } from "../../../base/support/clock.ts";
import { runSteps } from "../../../base/support/steps.ts";
import type { WorkProgress } from "../../../base/support/work_progress.ts";
import { RetryEngine } from "../retry_engine.ts";
import type { RetryVerifyReport, StoreClient, StoreHooks, StoreMethod, StoreMethods } from "../store_methods.ts";
import type { StoreRules } from "../store_rules.ts";
import { PostgresQueue } from "./postgres_queue.ts";
import { postgresQueueTables } from "./postgres_queue_tables.ts";
import { PostgresRows } from "./postgres_rows.ts";
import { verifyPostgresQueue } from "./verify_postgres_queue.ts";

export interface PostgresStoreOptions {
  readonly address: DatabaseAddress;
  readonly name: string;
  readonly rules: StoreRules;
  readonly mustExist: boolean;
  readonly migrates?: boolean;
  readonly wasMoved?: boolean;
  readonly requiresSync?: boolean;
  /** The duration of this process's lease on messages, in milliseconds; undefined if the process claims none. */
  readonly leaseMs?: number;
  readonly hooks?: StoreHooks;
  readonly random?: () => number;
  /** The clock; tests replace it. */
  readonly clock?: Clock;
  readonly connect?: typeof connectToPrimary;
}

export class PostgresRetryStore implements StoreClient, AsyncDisposable {
  readonly #queue: PostgresQueue;
  readonly #rows: PostgresRows;
  readonly #engine: RetryEngine;
  readonly #hooks: StoreHooks;
  #nextSeq = -1;
  #isChecking = false;

  private constructor({ rules, hooks = {}, leaseMs = 0, random, ...options }: PostgresStoreOptions) {
    const { address, name, requiresSync = false, clock = systemClock() } = options;
    const { onDamage, onWarning } = hooks;
    this.#hooks = hooks;
    this.#queue = new PostgresQueue({
      address,
      name,
      clock,
      requiresSync,
      letters: rules.letters,
      ...(onDamage === undefined ? {} : { onDamage }),
      ...(onWarning === undefined ? {} : { onWarning }),
      ...(options.connect === undefined ? {} : { connect: options.connect }),
    });
    this.#rows = new PostgresRows(this.#queue, { clock, leaseMs });
    this.#engine = new RetryEngine(this.#rows, rules, random);
  }

  /**
   * Prepares the database: creates the tables and accepts another cluster, if the options say so. Rejects with
   * StatementError.
   */
  static async prepare(
    { address, migrates = false, wasMoved = false }: Pick<PostgresStoreOptions, "address" | "migrates" | "wasMoved">,
  ): Promise<void> {
    if (migrates) {
      await migrateDatabase(address, { tables: postgresQueueTables, clock: systemClock(), name: "migration" });
    }
    if (wasMoved) await acceptMovedDatabase(address, { clock: systemClock(), name: "operator" });
  }

  /**
   * Opens the store. Rejects with CONFIG if the queue does not exist or the database cannot be used, or with
   * UNREACHABLE or REFUSED.
   */
  static async open(options: PostgresStoreOptions): Promise<PostgresRetryStore> {
    const { mustExist } = options;
    await PostgresRetryStore.prepare(options);
    const store = new PostgresRetryStore(options);
    try {
      await store.#queue.open({ mustExist });
      return store;
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  call<Name extends StoreMethod>(
    method: Name,
    ...values: Parameters<StoreMethods[Name]>
  ): Promise<ReturnType<StoreMethods[Name]>> {
    return runSteps(this.#engine.call(method, ...values));
  }

  /** Reads. Every call uses a separate snapshot. */
  read<Name extends StoreMethod>(
    method: Name,
    ...values: Parameters<StoreMethods[Name]>
  ): Promise<ReturnType<StoreMethods[Name]>> {
    return this.call(method, ...values);
  }

  /** Checks everything in the queue, even during use. Changes nothing. */
  verify(progress?: WorkProgress): Promise<RetryVerifyReport> {
    return verifyPostgresQueue(this.#queue, progress);
  }

  /** Calls `onChanged` if any process has accepted messages since the last call. */
  checkForChanges(): void {
    if (this.#isChecking) return;
    this.#isChecking = true;
    const look = async () => {
      const text = "SELECT next_seq FROM SCHEMA.queue WHERE id = $1";
      const [row] = await this.#queue.runOnce("queue_next_seq", text, [this.#queue.id], { lane: "accepts" });
      const nextSeq = Number(row?.["next_seq"]);
      if (nextSeq !== this.#nextSeq) this.#hooks.onChanged?.();
      this.#nextSeq = nextSeq;
    };
    // An error is ignored here, because the calls of the processor report it.
    look().catch(() => {}).finally(() => this.#isChecking = false);
  }

  /** Ends calls in progress. */
  async close(): Promise<void> {
    await this.#rows.letters.leaveRole().catch(() => {}); // otherwise the role ends by itself, but later
    await this.#queue.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

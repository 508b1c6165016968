/**
 * A queue of statements for one connection to the primary: one statement at a time, in order. Opens a connection for
 * the first statement, and a new one after a loss. A lane never repeats a statement, because only its caller knows what
 * to do about an unknown outcome.
 *
 * Interface for stores:
 *
 *   const address = parseDatabaseUrl("postgres://pg1,pg2/baton", { mayHavePassword: false });
 *   await using lane = new DatabaseLane({ address, clock, name: "s1", onConnect: requireStoreFormat… });
 *   const statement = { name: "topic_put", text: "UPDATE …" };
 *   const rows = await lane.run(statement, [1, [2, 3], Buffer.from("…")], { deadlineMs: 10_000 });
 *
 * - `run` resolves only when the statement is committed, and durable on the synchronous standby if there is one.
 * - It rejects with a StatementError. After the `outcome` "not_sent" or "rolled_back" the database is unchanged. After
 *   "unknown" the statement may have been executed, or may be executed later, even after statements of a new
 *   connection; such a statement must therefore be fenced. `isTemporary`: the same statement may succeed later.
 * - `onConnect` checks each new connection before its first statement: the store's format and ID, the timeline.
 * - `retryTemporaryDatabaseErrors` repeats a statement that certainly was not executed.
 * - Integers in rows are numbers (bigint beyond 2^53), bytea is a Buffer, bool a boolean, everything else text.
 */
import { BatonError, errorMessage } from "../errors.ts";
import { CleanupScope, onAbort } from "../support/abort.ts";
import { backoffMs, serverBackoff } from "../support/backoff.ts";
import type { Clock } from "../support/clock.ts";
import { deadlineAfter, sleep } from "../support/deadline.ts";
import { type DatabaseAddress, describeDatabase } from "./database_address.ts";
import {
  connectToPrimary,
  type PostgresRow,
  PrimaryConnection,
  type SqlParameter,
  type SqlStatement,
} from "./primary_connection.ts";
import { StatementError } from "./statement_error.ts";

export interface DatabaseLaneOptions {
  readonly address: DatabaseAddress;
  readonly clock: Clock;
  /** The name of this program, for pg_stat_activity. */
  readonly name: string;
  /**
   * Runs on each new connection before the caller's statement. If it rejects, the connection is closed, and the
   * statement fails with the same error.
   */
  readonly onConnect?: (connection: PrimaryConnection) => Promise<void>;
  /** Called if renewed TLS files cannot be used. */
  readonly warn?: ((text: string) => void) | undefined;
  readonly connect?: typeof connectToPrimary;
}

export interface DatabaseLaneRunOptions {
  /** How long the statement may take in milliseconds, including the wait for its turn and for a connection. */
  readonly deadlineMs?: number;
  /** How long the statement may wait for a connection, in milliseconds. */
  readonly connectMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The default time limit in milliseconds. The database's `statement_timeout` is shorter: a slow statement then ends
 * with a known outcome.
 */
const defaultDeadlineMs = 40_000;
/** The most statements that may wait. Few statements wait, because callers combine waiting work into one statement. */
const waitingMax = 10_000;

export class DatabaseLane implements AsyncDisposable {
  readonly #options: DatabaseLaneOptions;
  readonly #closing = new AbortController();
  #connection: PrimaryConnection | null = null;
  #whyNotConnected: string | null = null;
  /** Settles when the last statement in the queue has ended. */
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(options: DatabaseLaneOptions) {
    this.#options = options;
  }

  get address(): DatabaseAddress {
    return this.#options.address;
  }

  /** Says why the last attempt to connect has failed; null after a success. */
  get whyNotConnected(): string | null {
    return this.#whyNotConnected;
  }

  /** Runs a statement after all earlier ones. Rejects with StatementError. */
  run(
    statement: SqlStatement,
    values: readonly SqlParameter[] = [],
    options: DatabaseLaneRunOptions = {},
  ): Promise<PostgresRow[]> {
    if (this.#waiting >= waitingMax) {
      const message = `More than ${waitingMax} statements wait for the database ${describeDatabase(this.address)}`;
      return Promise.reject(new StatementError(message, { outcome: "not_sent", sqlState: null, code: "LOCK_BUSY" }));
    }
    this.#waiting++;
    const { clock } = this.#options;
    const { deadlineMs = defaultDeadlineMs, connectMs = deadlineMs, signal } = options;
    const parent = signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal]);
    const deadline = deadlineAfter(clock, deadlineMs, {
      signal: parent,
      reason: () => new BatonError("UNREACHABLE", `no result within ${deadlineMs} ms`),
    });
    const result = this.#last.then(() => this.#runNow(statement, values, connectMs, deadline.signal)).finally(() => {
      this.#waiting--;
      deadline.cancel();
    });
    // Does not keep the result, whose rows would otherwise stay in memory until the next statement.
    this.#last = result.then(() => {}, () => {});
    return result;
  }

  /** Opens the connection if there is none. Rejects like `run`, or with an error of `onConnect`. */
  connect(options: DatabaseLaneRunOptions = {}): Promise<unknown> {
    return this.run({ name: "baton_connected", text: "SELECT 1" }, [], options);
  }

  /** Ends the running statement, whose outcome is then unknown, and refuses all waiting statements. */
  async close(): Promise<void> {
    this.#closing.abort(new BatonError("UNREACHABLE", "the connection was closed by this process"));
    await this.#last;
    this.#connection?.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #runNow(
    statement: SqlStatement,
    values: readonly SqlParameter[],
    connectMs: number,
    signal: AbortSignal,
  ): Promise<PostgresRow[]> {
    const connection = this.#connection?.isOpen ? this.#connection : await this.#openWithin(connectMs, signal);
    return await connection.run(statement, values, signal);
  }

  async #openWithin(connectMs: number, signal: AbortSignal): Promise<PrimaryConnection> {
    using limit = deadlineAfter(this.#options.clock, connectMs, {
      signal,
      reason: () => new BatonError("UNREACHABLE", `no connection within ${connectMs} ms`),
    });
    return await this.#open(limit.signal);
  }

  /**
   * Opens a connection. Repeats failed attempts until the signal aborts, or until an attempt fails with a permanent
   * error.
   */
  async #open(signal: AbortSignal): Promise<PrimaryConnection> {
    this.#connection = null;
    const { address, clock, name, onConnect, warn, connect = connectToPrimary } = this.#options;
    let last: unknown = null;
    for (let attempt = 0;; attempt++) {
      if (signal.aborted) throw this.#notConnected(last ?? signal.reason);
      let opened: PrimaryConnection | null = null;
      try {
        const connection = opened = await connect(address, { clock, name, signal, warn });
        // Aborting closes the connection, because the statements of `onConnect` have no deadline of their own.
        using _end = new CleanupScope(onAbort(signal, () => connection.close()));
        await onConnect?.(connection);
        this.#whyNotConnected = null;
        return this.#connection = opened;
      } catch (error) {
        opened?.close();
        if (signal.aborted) throw this.#notConnected(last ?? error);
        this.#whyNotConnected = errorMessage(error);
        if (!(error instanceof StatementError)) throw error;
        // If a statement of `onConnect` has an unknown outcome, the connection was lost, and a new attempt may succeed.
        if (!error.isTemporary && error.outcome !== "unknown") throw error;
        last = error;
      }
      await sleep(clock, backoffMs(attempt, serverBackoff), signal).catch(() => {});
    }
  }

  #notConnected(why: unknown): StatementError {
    if (why instanceof StatementError && why.outcome === "not_sent") return why;
    const message = `No connection to the database ${describeDatabase(this.address)}: ${(why as Error).message}`;
    return new StatementError(message, { outcome: "not_sent", sqlState: null, cause: why });
  }
}

/**
 * Repeats `work`, with pauses, as long as its errors are temporary and the database is unchanged. Rejects with the last
 * error when the signal aborts, and immediately with any other error.
 */
export async function retryTemporaryDatabaseErrors<T>(
  work: () => Promise<T>,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<T> {
  for (let attempt = 0;; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StatementError) || !error.isTemporary || signal.aborted) throw error;
      await sleep(clock, backoffMs(attempt, serverBackoff), signal).catch(() => {});
      if (signal.aborted) throw error;
    }
  }
}

/**
 * One connection to the primary, the server of a cluster that accepts writes. Runs one statement at a time in
 * autocommit. The error of a failed statement says what is known about its outcome. Owns the socket. Does not
 * reconnect; DatabaseLane does.
 *
 * Requests results as text, because pg destroys bytes in binary results by decoding them as UTF-8 (ADR 34).
 */
import pg from "pg";
import { defaultTlsAuthorities } from "../sockets/client_tls.ts";
import { BatonError, errorMessage } from "../errors.ts";
import { describeSocketFailure } from "../sockets/describe_failure.ts";
import { CleanupScope, onAbort } from "../support/abort.ts";
import type { Clock } from "../support/clock.ts";
import { printable } from "../support/text.ts";
import {
  chooseTlsVerification,
  type DatabaseAddress,
  type DatabaseHost,
  describeDatabase,
  describeDatabaseHost,
  readDatabasePassword,
  type TlsVerification,
} from "./database_address.ts";
import { TlsFiles } from "../sockets/tls_files.ts";
import { findMissingRowsMessage, missingRowsHint } from "./required_rows.ts";
import { describeDatabaseError, isTemporaryConnectRefusal, StatementError } from "./statement_error.ts";

/** A statement, which each connection prepares when it first runs it. */
export interface SqlStatement {
  /** The name of the prepared statement, unique in the program. If the name is empty, the statement is not prepared. */
  readonly name: string;
  /** One SQL statement with parameters $1, $2, … */
  readonly text: string;
  /** The number of rows that the statement must return, one row for each changed row. Fewer rows are an error. */
  readonly rowsMin?: number;
}

/** A parameter of a statement. A Buffer becomes bytea, a list becomes an array. */
export type SqlParameter = string | number | bigint | boolean | null | Buffer | readonly SqlParameter[];
/**
 * A value in a row. An integer is a number, or a bigint beyond 2^53. A bytea is a Buffer. Values of other types are
 * text.
 */
export type PostgresValue = string | number | bigint | boolean | null | Buffer;
export type PostgresRow = Readonly<Record<string, PostgresValue>>;

/** Settings of the session. Plans that read whole tables are turned off, because every access uses a key. */
const sessionSettings: Readonly<Record<string, string>> = {
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  jit: "off",
  bytea_output: "hex",
  // Makes PostgreSQL send the warning about a commit that did not wait for its standby, whatever the role has set.
  client_min_messages: "warning",
  statement_timeout: "30s",
  lock_timeout: "10s",
  tcp_user_timeout: "10s",
  DateStyle: "ISO",
  TimeZone: "UTC",
  // Turns a policy that hides rows into an error; otherwise reads and changes would silently omit those rows.
  row_security: "off",
};

/** The time limit for opening a connection to one host, in milliseconds. */
const hostTimeoutMs = 5000;

export interface PrimaryConnectOptions {
  readonly clock: Clock;
  /** The name of this program, for pg_stat_activity, which shows it after "baton ". */
  readonly name: string;
  readonly signal?: AbortSignal | undefined;
  /** Called if renewed TLS files cannot be used. */
  readonly warn?: ((text: string) => void) | undefined;
}

/**
 * Connects to the first host that accepts writes. Rejects with StatementError: UNREACHABLE if a later attempt may
 * succeed, otherwise CONFIG or REFUSED. Also rejects with the signal's reason.
 */
export async function connectToPrimary(
  address: DatabaseAddress,
  options: PrimaryConnectOptions,
): Promise<PrimaryConnection> {
  const failures: { readonly host: DatabaseHost; readonly error: StatementError }[] = [];
  for (const host of address.hosts) {
    try {
      return await PrimaryConnection.open(address, host, options);
    } catch (error) {
      if (!(error instanceof StatementError)) throw error;
      failures.push({ host, error });
    }
  }
  const where = describeDatabase(address);
  const reasons = failures.map(({ host, error }) => `${describeDatabaseHost(host)}: ${error.message}`).join("; ");
  // Another host may become the primary, so only a failure of all hosts is final.
  const code = failures.every(({ error }) => !error.isTemporary) ? failures[0]?.error.code ?? "CONFIG" : "UNREACHABLE";
  throw new StatementError(`Cannot connect to the database ${where}: ${reasons}`, {
    outcome: "not_sent",
    sqlState: failures[0]?.error.sqlState ?? null,
    code,
    cause: failures[0]?.error,
  });
}

export class PrimaryConnection {
  readonly host: DatabaseHost;
  readonly #client: pg.Client;
  readonly #where: string;
  readonly #address: DatabaseAddress;
  #isOpen = true;
  #isBusy = false;
  /** True if the server has ended the current statement: ReadyForQuery has arrived. */
  #isReady = false;
  /** True if there is no pooler between this process and the database. See `primaryCheck`. */
  #isDirect = false;
  /** The first SQLSTATE that ended the connection. A pooler may send more SQLSTATEs afterwards. */
  #endedBy: string | null = null;
  #warning: string | null = null;
  #onSettled: () => void = () => {};
  #onGone: () => void = () => {};

  private constructor(client: pg.Client, address: DatabaseAddress, host: DatabaseHost) {
    this.#client = client;
    this.#address = address;
    this.host = host;
    this.#where = describeDatabaseHost(host);
    client.on("drain", () => {
      this.#isReady = true;
      this.#onSettled();
    });
    const gone = (error?: unknown) => {
      if (error instanceof pg.DatabaseError) this.#endedBy ??= error.code ?? null;
      this.#isOpen = false;
      this.#onGone();
      this.#onSettled();
    };
    client.on("error", gone);
    client.on("end", gone);
    client.on("notice", (notice) => {
      if (mayWarnOfUnconfirmedCommit(notice)) this.#warning = notice.message ?? "warning 01000";
    });
  }

  /**
   * Opens a connection. If a pooler is between, this first connection only checks the pooler, and a second connection
   * is returned.
   */
  static async open(
    address: DatabaseAddress,
    host: DatabaseHost,
    options: PrimaryConnectOptions,
  ): Promise<PrimaryConnection> {
    const first = await PrimaryConnection.#open(address, host, options);
    if (first.#isDirect) return first;
    await first.#opening(options, () => first.#requireOwnSession(options.clock));
    const second = await PrimaryConnection.#open(address, host, options);
    // Sets the session's settings, because the pooler may have dropped the connection's options.
    if (!second.#isDirect) await second.#opening(options, () => second.run(setSettings, []));
    return second;
  }

  static async #open(
    address: DatabaseAddress,
    host: DatabaseHost,
    options: PrimaryConnectOptions,
  ): Promise<PrimaryConnection> {
    const client = new pg.Client(clientConfig(address, host, options));
    const connection = new PrimaryConnection(client, address, host);
    await connection.#opening(options, async () => {
      await connection.#orGone(client.connect());
      await connection.#requirePrimary();
    });
    return connection;
  }

  /** Does one step of opening a connection. Closes the connection if the step fails or takes too long. */
  async #opening({ clock, signal }: PrimaryConnectOptions, work: () => Promise<unknown>): Promise<void> {
    let abortReason: unknown = null;
    using _ends = new CleanupScope(
      clock.startTimer(hostTimeoutMs, () => this.#destroy()),
      onAbort(signal, (reason) => {
        abortReason = reason;
        this.#destroy();
      }),
    );
    try {
      await work();
    } catch (error) {
      this.#destroy();
      if (abortReason !== null) throw abortReason;
      throw connectError(error, this.#address, this.host);
    }
  }

  /** True until the loss of the connection is detected. Right after a loss it may still be true. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /**
   * Runs a statement; the caller must wait for the previous one. Rejects with StatementError, which tells whether the
   * statement was executed. If the signal aborts, the connection is closed, and the outcome is unknown. The database is
   * not asked to cancel the statement, because it would report success for a canceled wait for the standby.
   */
  async run(
    { name, text, rowsMin = 0 }: SqlStatement,
    values: readonly SqlParameter[],
    signal?: AbortSignal,
  ): Promise<PostgresRow[]> {
    if (this.#isBusy) throw new BatonError("INTERNAL", `Statement ${name} was started while another statement runs`);
    if (!this.#isOpen || signal?.aborted) {
      throw this.#lostError("not_sent", signal?.aborted ? signal.reason : "the connection is lost");
    }
    this.#isBusy = true;
    this.#isReady = false;
    this.#warning = null;
    using _end = new CleanupScope(onAbort(signal, () => this.#destroy()));
    try {
      const query = this.#client.query<Record<string, PostgresValue>>({
        name,
        text,
        values: values as unknown[],
        types: { getTypeParser: parserOf as unknown as typeof pg.types.getTypeParser },
      });
      const { rows } = await this.#orGone(query);
      if (this.#warning === null && rows.length < rowsMin) {
        throw this.#missingRows(`only ${rows.length} of ${rowsMin} rows were changed (${name})`);
      }
      if (this.#warning === null) return rows;
      this.#destroy();
      const why = `the database committed without waiting for its standby (${this.#warning})`;
      throw new StatementError(`${this.#where}: ${why}`, { outcome: "unknown", sqlState: "01000" });
    } catch (error) {
      if (error instanceof BatonError) throw error;
      throw await this.#failure(error, name);
    } finally {
      this.#isBusy = false;
    }
  }

  /** Closes the socket. A running statement then has an unknown outcome. */
  close(): void {
    this.#destroy();
  }

  /**
   * Makes the error of a failed statement. If the server is ready for the next statement, it has refused the failed
   * statement; otherwise the connection is lost.
   */
  async #failure(error: unknown, name: string): Promise<StatementError> {
    const sqlState = error instanceof pg.DatabaseError ? error.code ?? null : null;
    if (sqlState === null) {
      // A missing SQLSTATE means that the connection is lost, or that pg refused the values before sending them.
      this.#destroy();
      return this.#lostError("unknown", error);
    }
    if (!this.#isReady && this.#isOpen) await new Promise<void>((resolve) => (this.#onSettled = resolve));
    this.#onSettled = () => {};
    if (!this.#isReady) {
      this.#destroy();
      return this.#lostError("unknown", error, sqlState);
    }
    // SQLSTATE 25006 means that this server is no longer the primary. The next connection finds the new primary.
    if (sqlState === "25006") this.#destroy();
    const missing = findMissingRowsMessage(errorMessage(error));
    if (missing !== null) return this.#missingRows(`${missing} (${name})`, error);
    return new StatementError(`${this.#where}: ${describeDatabaseError(error, sqlState, name, this.#address)}`, {
      outcome: "rolled_back",
      sqlState,
      cause: error,
    });
  }

  #missingRows(what: string, cause?: unknown): StatementError {
    const message = `${this.#where}: ${what}: ${missingRowsHint}`;
    return new StatementError(message, { outcome: "rolled_back", sqlState: null, code: "CONFIG", cause });
  }

  #lostError(outcome: "not_sent" | "unknown", cause: unknown, sqlState: string | null = null): StatementError {
    return new StatementError(
      `The connection to the database at ${this.#where} was lost: ${printable(describeSocketFailure(cause))}`,
      {
        outcome,
        sqlState,
        cause,
      },
    );
  }

  async #requirePrimary(): Promise<void> {
    const [row] = await this.run(primaryCheck, [this.#processId]);
    this.#isDirect = row?.["direct"] === true;
    if (row?.["recovering"] !== false || row["read_only"] !== "off") {
      const why = row?.["recovering"] === false ? "it is read-only (default_transaction_read_only)" : "it is a standby";
      throw new StatementError(why, { outcome: "not_sent", sqlState: null });
    }
  }

  /**
   * Throws CONFIG if a pooler lets other connections use the database process of this connection. To find out, limits
   * the time that the process may be idle. If the process serves only this connection, the end of the process also ends
   * the connection. Otherwise the next statement still has a result.
   */
  async #requireOwnSession(clock: Clock): Promise<void> {
    const refusal = await this.run({ name: "", text: `SET idle_session_timeout = ${idleMs}` }, []).then(
      () => null,
      (error: StatementError) => error,
    );
    // PostgreSQL 13 has no such limit.
    if (refusal?.sqlState === "42704") throw pooledError(`a pooler is between, and ${sharesSessions("may have")}`);
    if (refusal !== null) throw refusal;
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    this.#onGone = resolve;
    using _end = new CleanupScope(clock.startTimer(5 * idleMs, resolve));
    if (this.#isOpen) await ended;
    if (this.#endedBy === idleSessionEnd) return;
    // The idle time is over before the database reads this statement, however slow the machine is.
    await this.run({ name: "", text: "SELECT 1" }, []).catch((error) => {
      throw this.#lostError("not_sent", error);
    });
    throw pooledError(`a pooler is between, and ${sharesSessions("has")}`);
  }

  /** The number of the database process, as the connection was told. The types of pg omit this property. */
  get #processId(): number {
    return (this.#client as unknown as { processID: number | null }).processID ?? 0;
  }

  /**
   * Awaits a promise of pg, or rejects when the connection ends, because the promise may then stay pending. Each call
   * makes its own promise for the end: a shared promise would keep all results in memory.
   */
  #orGone<T>(work: Promise<T>): Promise<T> {
    const { promise: gone, reject } = Promise.withResolvers<never>();
    this.#onGone = () => reject(new Error("the connection was closed"));
    if (!this.#isOpen) this.#onGone();
    return Promise.race([work, gone]).finally(() => (this.#onGone = () => {}));
  }

  #destroy(): void {
    this.#isOpen = false;
    this.#onGone();
    this.#onSettled();
    // Destroys the stream itself, because `end` may wait forever for the server, and pg has no other public method.
    const { stream } = (this.#client as unknown as { connection: { stream: { destroy(): void } } }).connection;
    this.#client.end().catch(() => {});
    stream.destroy();
  }
}

/**
 * Functions of PostgreSQL that warn when transaction IDs run low. Each write repeats this warning, long before the IDs
 * are used up.
 */
const wraparoundRoutines = new Set([
  "GetNewTransactionId",
  "SetTransactionIdLimit",
  "GetNewMultiXactId",
  "SetMultiXactIdLimit",
]);

/**
 * Returns true if a warning may mean that a statement committed without waiting for its synchronous standby. That
 * warning has a generic code and a translated text, so every unknown warning counts.
 */
export function mayWarnOfUnconfirmedCommit(
  { code, routine }: { readonly code?: string | undefined; readonly routine?: string | undefined },
): boolean {
  return code === "01000" && !wraparoundRoutines.has(routine ?? "");
}

/** How long a session behind a pooler may be idle while it is checked, in milliseconds. */
const idleMs = 100;
/** The SQLSTATE idle_session_timeout. */
const idleSessionEnd = "57P05";
const sharesSessions = (has: string) =>
  `a transaction ${has} another session than the previous transaction (PgBouncer: pool_mode)`;

/**
 * A statement that finds out whether the server is the primary, and whether there is a pooler. `direct` is true if the
 * statement runs in the process whose number the connection was told; a pooler tells a number of its own. The statement
 * also turns off `transaction_timeout`, which would end the whole connection and leave the outcome unknown. PostgreSQL
 * before version 17 refuses connections that set `transaction_timeout`, so `sessionSettings` cannot contain it.
 */
const primaryCheck: SqlStatement = {
  name: "", // not prepared, because a pooler may mix up prepared statements
  text: "SELECT pg_backend_pid() = $1::bigint AS direct, pg_is_in_recovery() AS recovering, " +
    "current_setting('transaction_read_only') AS read_only, " +
    "(SELECT set_config(name, '0', false) FROM pg_settings " +
    "WHERE name = 'transaction_timeout' AND pg_backend_pid() = $1::bigint) AS transaction_timeout",
};

/** Sets `sessionSettings` in the session behind a pooler. */
const setSettings: SqlStatement = {
  name: "",
  text: `SELECT ${
    Object.entries(sessionSettings).map(([name, value]) => `set_config('${name}', '${value}', false)`).join(", ")
  }, (SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'transaction_timeout')`,
};

function pooledError(why: string, cause?: unknown): StatementError {
  return new StatementError(`${why}; connect to PostgreSQL itself, or to a pooler that keeps sessions`, {
    outcome: "not_sent",
    sqlState: null,
    code: "CONFIG",
    cause,
  });
}

function clientConfig(
  address: DatabaseAddress,
  host: DatabaseHost,
  { name, warn }: Pick<PrimaryConnectOptions, "name" | "warn">,
): pg.ClientConfig {
  const { user, database, password } = address;
  const verification = chooseTlsVerification(address, host);
  return {
    host: host.host,
    port: host.port,
    user,
    database,
    // Passes a function, because otherwise pg looks for a password file itself and prints to stderr.
    password: () => password ?? readDatabasePassword(address, host) ?? missingPassword(address, host),
    ssl: verification === null ? false : tlsConfig(address, verification, warn),
    application_name: `baton ${name}`.slice(0, 63),
    options: Object.entries(sessionSettings).map(([setting, value]) => `-c ${setting}=${value}`).join(" "),
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  };
}

/**
 * The TLS files of each address. While new contents of the files cannot be used, the last usable contents stay in
 * effect.
 */
const tlsFiles = new Map<string, TlsFiles>();

/** Returns the TLS options of a connection. Throws CONFIG if the files cannot be used at the first connection. */
function tlsConfig(
  { tlsFiles: names }: DatabaseAddress,
  verification: TlsVerification,
  warn: PrimaryConnectOptions["warn"],
): NonNullable<pg.ClientConfig["ssl"]> {
  const key = JSON.stringify(names);
  const files = tlsFiles.get(key) ?? new TlsFiles(names, { warn });
  tlsFiles.set(key, files);
  return {
    ...(verification === "require" ? {} : { ca: defaultTlsAuthorities() }),
    ...files.current(),
    rejectUnauthorized: verification !== "require",
    ...(verification === "verify-ca" ? { checkServerIdentity: () => undefined } : {}),
  };
}

function missingPassword({ user, database }: DatabaseAddress, host: DatabaseHost): never {
  const where = `user "${user}" of database "${database}" at ${describeDatabaseHost(host)}`;
  throw new BatonError(
    "REFUSED",
    `the server wants a password, and there is none for ${where}: use PGPASSWORD, or a line in ~/.pgpass or PGPASSFILE`,
  );
}

/** Makes the error of an attempt to connect that failed, or that reached a server other than the primary. */
function connectError(error: unknown, address: DatabaseAddress, host: DatabaseHost): StatementError {
  if (error instanceof StatementError) return error;
  if (error instanceof BatonError) {
    return new StatementError(error.message, { outcome: "not_sent", sqlState: null, code: error.code, cause: error });
  }
  const message = printable(describeSocketFailure(error));
  if (error instanceof pg.DatabaseError) {
    const sqlState = error.code ?? null;
    if (/unsupported startup parameter|startup options? not supported/i.test(message)) {
      return pooledError(`${message}: a pooler such as PgBouncer is between`, error);
    }
    const isTemporaryRefusal = sqlState !== null && isTemporaryConnectRefusal(sqlState);
    return new StatementError(sqlState === null ? message : describeDatabaseError(error, sqlState, "", address), {
      outcome: "not_sent",
      sqlState,
      ...(isTemporaryRefusal ? { code: "UNREACHABLE" as const } : {}),
      cause: error,
    });
  }
  if (chooseTlsVerification(address, host) !== null && isTlsRefusal(error)) {
    const why = /does not support SSL/i.test(message)
      ? "the server has TLS switched off (ssl = off); " +
        "switch TLS on there, or use ?sslmode=disable on a network that you trust"
      : `TLS: ${message}; the certificate authority is set with ?sslrootcert=FILE`;
    return new StatementError(why, { outcome: "not_sent", sqlState: null, code: "CONFIG", cause: error });
  }
  const why = /terminated|destroyed|closed/i.test(message) ? "no response" : message;
  return new StatementError(why, { outcome: "not_sent", sqlState: null, cause: error });
}

function isTlsRefusal(error: unknown): boolean {
  const code = String((error as { code?: unknown }).code ?? "");
  return /CERT|SELF_SIGNED|TLS|SSL|UNABLE_TO|ALTNAME/.test(code) ||
    /does not support SSL|certificate/i.test(errorMessage(error));
}

/** IDs of types in pg_type. */
const types = { bool: 16, bytea: 17, int8: 20, int2: 21, int4: 23, oid: 26 } as const;

function parserOf(type: number): (text: string) => PostgresValue {
  switch (type) {
    case types.bool:
      return (text) => text === "t";
    case types.bytea:
      return (text) => Buffer.from(text.slice(2), "hex"); // The text is \x followed by hexadecimal digits.
    case types.int2:
    case types.int4:
    case types.oid:
      return Number;
    case types.int8:
      return (text) => Number.isSafeInteger(Number(text)) ? Number(text) : BigInt(text);
    default:
      return (text) => text;
  }
}

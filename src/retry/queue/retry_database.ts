/**
 * The message store's file: one SQLite database that several processes of one machine use at once (call, submit, run, ls).
 * Every change is one transaction, begun IMMEDIATE: who decides by what it reads is alone until it has written. Synchronous:
 * services keep it in a thread, commands that end soon call it themselves.
 */
import { accessSync, constants, mkdirSync, statfsSync, statSync } from "node:fs";
import process from "node:process";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { nameInDatabase, userName } from "../../support/user_name.ts";
import { blockFor } from "../../support/write_whole.ts";
import { BatonError, messageOf } from "../../errors.ts";
import { OpenFilesCheck } from "../../storage/open_files_check.ts";
import { flushParentFolders } from "../../storage/durable_file.ts";
import { createDatabaseFile } from "../../storage/create_database_file.ts";
import { reserveFile } from "../../storage/durable_file.ts";
import { checkSqliteFormat } from "../../storage/sqlite_format.ts";
import { DamageLog, sentenceOf } from "../../storage/damage.ts";
import { damageInLog } from "../../storage/wal_check.ts";
import { type SqlRow, type SqlValue, withNearestNumbers } from "../../storage/sql_row.ts";
import type { ChecksumTable } from "../../storage/checksum_table.ts";
import { refuseNetworkFolder } from "./network_folder.ts";
import { applicationId, schema, storedFormat, tables } from "./retry_tables.ts";
import { busyMs, freeBytesKept, freeBytesLeast, freeShareKept, logBytes } from "./retry_store_limits.ts";

export const databaseName = "messages.sqlite";

/** How old a look at the files may be when something is committed, in milliseconds. */
const lookMs = 100;

export type { SqlRow };

export class RetryDatabase {
  readonly folder: string;
  readonly #database: DatabaseSync;
  readonly #files: OpenFilesCheck;
  readonly #statements = new Map<string, StatementSync>();
  /** What is not as it was stored. */
  readonly damage = new DamageLog();
  #dataVersion = -1;
  commits = 0;

  /**
   * Opens the store, and makes it when it is not there, unless `mustExist`. Throws CONFIG for another format, for another
   * program's database, for a network file system, and where it must exist and does not; IO otherwise, also for a damaged log.
   */
  constructor(folder: string, { mustExist = false }: { readonly mustExist?: boolean } = {}) {
    this.folder = folder;
    const path = join(folder, databaseName);
    if (mustExist) refuseMissing(folder, path);
    try {
      makeFolder(folder);
      refuseNetworkFolder(folder);
      const damage = damageInLog(path);
      // SQLite would leave out what it cannot read, and say nothing: messages that were accepted would be gone.
      if (damage !== null) throw new BatonError("IO", `The message store in ${folder} cannot be opened: ${damage}`);
      this.#database = retryWhileLocked(() => openTables(folder));
    } catch (error) {
      throw accessError(error, folder, path) ?? storeError(error, folder);
    }
    // Names of new files are on the disk before anything in them is answered for.
    try {
      flushParentFolders(folder);
    } catch (error) {
      this.#database.close();
      throw storeError(error, folder);
    }
    this.#files = new OpenFilesCheck(folder, [databaseName, `${databaseName}-wal`], { lookMs });
  }

  /** The number of the row that was inserted, if one was, and how many were changed. */
  run(sql: string, ...values: SqlValue[]): { readonly seq: number; readonly changes: number } {
    const { lastInsertRowid, changes } = this.#prepared(sql).run(...values);
    return { seq: Number(lastInsertRowid), changes: Number(changes) };
  }

  get(sql: string, ...values: SqlValue[]): SqlRow | undefined {
    return withNearestNumbers(this.#prepared(sql), (statement) => statement.get(...values));
  }

  all(sql: string, ...values: SqlValue[]): SqlRow[] {
    return withNearestNumbers(this.#prepared(sql), (statement) => statement.all(...values)) ?? [];
  }

  iterate(sql: string, ...values: SqlValue[]): IterableIterator<SqlRow> {
    return this.#database.prepare(sql).iterate(...values) as IterableIterator<SqlRow>;
  }

  /** A new row; `replace`: in the place of one with the same key. In a transaction, as `change`. */
  insert<Column extends string>(table: ChecksumTable<Column>, row: Readonly<Record<Column, SqlValue>>): void {
    this.run(table.insert, ...table.bind(row));
  }

  replace<Column extends string>(table: ChecksumTable<Column>, row: Readonly<Record<Column, SqlValue>>): void {
    this.run(table.replace, ...table.bind(row));
  }

  /** The number that the next row of a table with AUTOINCREMENT gets. */
  nextNumber(table: string): number {
    return Number(this.get("SELECT seq FROM sqlite_sequence WHERE name = ?", table)?.["seq"] ?? 0) + 1;
  }

  /** Changes the row with this key. False: there is none. Throws DamageError, and changes nothing, when it is not as it was stored. */
  change<Column extends string>(
    table: ChecksumTable<Column>,
    key: Partial<Record<Column, number | string>>,
    changes: { readonly [Name in Column]?: SqlValue },
  ): boolean {
    const [[column = "", value = ""] = []] = Object.entries<number | string | undefined>(key);
    const changed = Object.entries<SqlValue | undefined>(changes).filter(([, value]) => value !== undefined);
    const row = this.get(`SELECT ${table.allColumns} FROM ${table.name} WHERE ${column} = ?`, value);
    if (row === undefined) return false;
    this.damage.checked(table, row, whereOf(table.name, value));
    const sum = table.sumOf({ ...row, ...changes } as Record<Column, SqlValue>);
    const sets = [...changed.map(([name]) => name), "sum"].map((name) => `${name} = ?`).join(", ");
    const values = changed.map(([, value]) => value ?? null);
    this.run(`UPDATE ${table.name} SET ${sets} WHERE ${column} = ?`, ...values, sum, value);
    return true;
  }

  /**
   * Up to `max` rows that are not damaged: damaged ones are reported, and keep no others back. `read` gives the first `limit` rows,
   * always in the same order.
   */
  wholeRows(table: ChecksumTable<string>, max: number, read: (limit: number) => SqlRow[]): SqlRow[] {
    for (let limit = max;;) {
      const rows = read(limit);
      const whole = rows.filter((row) => this.wholeOrNull(table, row) !== null);
      if (whole.length === rows.length || whole.length >= max || rows.length < limit) return whole.slice(0, max);
      limit += rows.length - whole.length;
    }
  }

  /** The row, unless it is damaged: that is told. */
  wholeOrNull<Row extends SqlRow>(table: ChecksumTable<string>, row: Row): Row | null {
    if (table.isIntact(row)) return row;
    this.damage.found(sentenceOf(table.name, row["seq"] ?? row["id"], "of this store"));
    return null;
  }

  /**
   * Runs `work` in a transaction that is on the disk when this returns. When it throws nothing of it is stored, unless the
   * error is of the code IO: then nobody can say. STORE_FULL: the disk has no room.
   */
  transaction<T>(work: () => T): T {
    try {
      this.#files.check();
      this.#prepared("BEGIN IMMEDIATE").run();
    } catch (error) {
      throw storeError(error, this.folder);
    }
    let result: T;
    try {
      result = work();
    } catch (error) {
      this.#rollBack();
      throw storeError(error, this.folder);
    }
    try {
      this.#prepared("COMMIT").run();
    } catch (error) {
      this.#rollBack();
      throw storeError(error, this.folder);
    }
    this.commits++;
    return result;
  }

  /** One moment of the store, whatever is written meanwhile. Changes nothing, and waits for nobody. */
  snapshot<T>(work: () => T): T {
    try {
      this.#prepared("BEGIN").run();
      try {
        return work();
      } finally {
        this.#prepared("COMMIT").run();
      }
    } catch (error) {
      throw storeError(error, this.folder);
    }
  }

  /** For a look at all there is, inside a `snapshot`. */
  verify(look: (database: DatabaseSync) => void): void {
    look(this.#database);
  }

  /** Whether another process has written since the last call. */
  hasChanged(): boolean {
    const version = Number(this.get("PRAGMA data_version")?.["data_version"] ?? 0);
    const has = version !== this.#dataVersion;
    this.#dataVersion = version;
    return has;
  }

  /** Makes the log's file as long as it will be, where there is room. Inside a transaction: nobody else writes to it then. */
  reserveLog(): void {
    if (this.availableBytes() < 2 * logBytes) return;
    reserveFile(join(this.folder, `${databaseName}-wal`), logBytes);
  }

  /** After a transaction that found no room: moves the log into the database, where rows that are gone have left some. */
  relieve(): void {
    try {
      this.#database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // no room for that either: the next transaction says so
    }
  }

  /** What the database takes on the disk, and what is free there for this user. Bytes. */
  disk(): { readonly usedBytes: number; readonly freeBytes: number } {
    const pragma = (name: string) => Number(this.get(`PRAGMA ${name}`)?.[name] ?? 0);
    const { bsize, bavail } = statfsSync(this.folder);
    return {
      usedBytes: (pragma("page_count") - pragma("freelist_count")) * pragma("page_size"),
      freeBytes: bavail * bsize,
    };
  }

  /** What may still be taken in before the file system has as little room as is kept for what was accepted. Bytes. */
  availableBytes(): number {
    const { bsize, blocks, bavail } = statfsSync(this.folder);
    const kept = Math.max(freeBytesLeast, Math.min(freeBytesKept, blocks * bsize * freeShareKept));
    return bavail * bsize - kept;
  }

  close(): void {
    this.#database.close();
  }

  #rollBack(): void {
    try {
      this.#database.exec("ROLLBACK");
    } catch {
      // SQLite has rolled back by itself
    }
  }

  #prepared(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) this.#statements.set(sql, statement = this.#database.prepare(sql));
    return statement;
  }
}

/** What went wrong with the store, as a failure with a sentence. */
export function storeError(error: unknown, folder: string): BatonError {
  if (error instanceof BatonError) return error;
  const message = messageOf(error);
  const options = { cause: error };
  const { code, syscall } = error as NodeJS.ErrnoException;
  // What the system refuses names a path, in which any word may be.
  const says = (word: RegExp) => syscall === undefined && word.test(message);
  if (says(/full/i) || code === "ENOSPC") {
    return new BatonError("STORE_FULL", `The disk of the message store in ${folder} is full: ${message}`, options);
  }
  if (says(/locked|busy/i)) {
    const busy = `The message store in ${folder} is busy: other processes have kept it for ${busyMs / 1000} s`;
    return new BatonError("LOCK_BUSY", busy, options);
  }
  return new BatonError("IO", `The message store in ${folder} cannot be read or written: ${message}`, options);
}

/** The error of a user without write access; null: access is not the problem. `path`: the database. */
function accessError(error: unknown, folder: string, path: string): BatonError | null {
  if (!/readonly|unable to open/i.test(messageOf(error)) || (mayWrite(folder) && mayWrite(path))) return null;
  const { uid } = statSync(folder);
  const owner = uid === process.geteuid?.() ? "this user" : nameInDatabase(String(uid)) ?? `user ${uid}`;
  // A reader of a write-ahead log writes to shared memory, a file next to the log.
  const why = `readers write to its log, too; the owner of the store is ${owner}, this process runs as ${userName()}`;
  return new BatonError("IO", `The message store in ${folder} cannot be opened without write access: ${why}`, {
    cause: error,
  });
}

function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Throws CONFIG where there is none, IO where this user cannot see whether there is one. */
function refuseMissing(folder: string, path: string): void {
  let why = "is missing";
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found !== undefined && found.size > 0) return;
    if (found !== undefined) why = "is empty";
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOTDIR") throw storeError(error, folder);
  }
  throw new BatonError("CONFIG", `There is no message store in ${folder}: ${databaseName} ${why}`);
}

/** Bodies may be anybody's secrets: the folder is its user's alone. */
function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    const message = `Cannot make the folder of the message store, ${folder}: ${messageOf(error)}`;
    throw new BatonError("CANNOT_CREATE", message, { cause: error });
  }
}

/** The change to a write-ahead log waits for nobody by itself: of two that make the store, one is told that it is locked. */
function retryWhileLocked<T>(open: () => T): T {
  const startMs = performance.now();
  for (;;) {
    try {
      return open();
    } catch (error) {
      if (!/locked|busy/i.test(messageOf(error)) || performance.now() - startMs > busyMs) throw error;
      blockFor(10);
    }
  }
}

function openTables(folder: string): DatabaseSync {
  const path = join(folder, databaseName);
  const found = statSync(path, { throwIfNoEntry: false });
  const isNew = found === undefined;
  // To SQLite an empty file is a database without tables; no baton leaves one.
  if (found?.size === 0) throw new BatonError("CONFIG", emptyFileMessage(path));
  // Before the first table: so that a file can become shorter again.
  if (isNew) createDatabaseFile(path, "PRAGMA auto_vacuum = INCREMENTAL");
  const database = new DatabaseSync(path);
  try {
    database.exec(`PRAGMA busy_timeout = ${busyMs}`);
    const format = { what: "message store", folder, path, applicationId, format: storedFormat };
    if (!isNew) checkSqliteFormat(database, format);
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -16384");
    database.exec(`PRAGMA journal_size_limit = ${logBytes}`);
    checkSqliteFormat(database, format);
    if (Number(database.prepare("PRAGMA user_version").get()?.["user_version"]) !== storedFormat) {
      const name = storeName();
      const sum = tables.store.sumOf({ id: 0, name, paused: 0, redrives: 0 });
      database.exec(`BEGIN IMMEDIATE; ${schema}
        INSERT OR IGNORE INTO store (${tables.store.allColumns}) VALUES (0, '${name}', 0, 0, ${sum});
        PRAGMA user_version = ${storedFormat}; PRAGMA application_id = ${applicationId};
        COMMIT`);
    }
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function emptyFileMessage(path: string): string {
  return `The message store ${path} is empty: it was cut off, and what was in it is gone. Put a copy in its place, or, to ` +
    `begin with an empty store, remove it and what is beside it with the same beginning of the name`;
}

/** Stands before the number in every message's id, which so is nobody else's: 40 random bits in Crockford's base 32. */
function storeName(): string {
  const digits = "0123456789abcdefghjkmnpqrstvwxyz";
  return [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => digits[byte & 31]).join("");
}

function whereOf(table: string, key: number | string): string {
  return table === "messages" ? "of this store" : `of this store (${key})`;
}

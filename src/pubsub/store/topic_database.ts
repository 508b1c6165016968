/**
 * The topic store's files: one SQLite database with the rows, and a second one that is only ever locked, so that a data
 * directory has one owner while others may read it (backup, verify). Whoever removes the second one lets another owner
 * in: the rows name the last to open them, and nobody else changes them. Synchronous: it lives in the store's thread.
 */
import { existsSync, mkdirSync, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { BatonError, messageOf } from "../../errors.ts";
import { OpenFilesCheck } from "../../storage/open_files_check.ts";
import { flushParentFolders } from "../../storage/durable_file.ts";
import { createPrivateFile } from "../../storage/durable_file.ts";
import { reserveFile } from "../../storage/durable_file.ts";
import { checkSqliteFormat } from "../../storage/sqlite_format.ts";
import { damageInLog } from "../../storage/wal_check.ts";
import type { SqlRow, SqlValue } from "../../storage/sql_row.ts";
import { type ChecksumTable, isDamage } from "../../storage/checksum_table.ts";
import { DamageLog } from "../../storage/damage.ts";
import { clientsOfDamagedIndexes } from "./index_check.ts";
import { applicationId, schema, storedFormat, tables } from "./topic_tables.ts";

export const databaseName = "topics.sqlite";
export const ownerName = "owner.sqlite";

/** The write-ahead log keeps this much of the disk, because a flush that makes a file longer takes twice as long. */
const logBytes = 8 << 20;
/** From so much on it is copied into the database beside the commits (`topic_store_checkpoint_worker.ts`) … */
export const checkpointBytes = 4 << 20;
/** … and from so much on by the thread that commits, which then waits for it. */
export const checkpointAtOnceBytes = 32 << 20;
const pageBytes = 4096;
/** How old a look at the files may be when something is committed, in milliseconds. */
const lookMs = 100;

/** The rows are another process's now. */
export class StoreLost extends Error {}

export type { SqlRow };

export class TopicDatabase {
  readonly dataDir: string;
  readonly #owner: DatabaseSync;
  readonly #database: DatabaseSync;
  readonly #name = crypto.randomUUID();
  readonly #statements = new Map<string, StatementSync>();
  #loggedBytes = 0;
  #isOpen = false;
  #damagedIndexes: ReadonlySet<number> | "all" | null = null;
  readonly #files: OpenFilesCheck;
  /** What is not as it was stored. */
  readonly damage = new DamageLog();
  /** Statements that were run: what work costs, in tests. */
  statements = 0;
  commits = 0;

  /**
   * Throws LOCK_BUSY when another process owns the directory, CONFIG when its format is another one, IO otherwise: also where the
   * log is damaged, unless `acceptDamagedLog` says that what SQLite can read of it is what counts.
   */
  constructor(dataDir: string, { acceptDamagedLog = false }: { readonly acceptDamagedLog?: boolean } = {}) {
    this.dataDir = dataDir;
    try {
      mkdirSync(dataDir, { recursive: true, mode: 0o700 });
      this.#owner = own(dataDir);
    } catch (error) {
      throw storeError(error, dataDir);
    }
    try {
      // SQLite would leave out what it cannot read, and say nothing: messages that were answered OK would be gone.
      const damage = acceptDamagedLog ? null : damageInLog(join(dataDir, databaseName));
      if (damage !== null) throw new BatonError("IO", damagedLog(dataDir, damage));
      this.#database = openRows(dataDir, this.#name);
    } catch (error) {
      this.#owner.close();
      throw storeError(error, dataDir);
    }
    // Names of new files are on the disk before anything in them is answered for.
    try {
      flushParentFolders(dataDir);
    } catch (error) {
      this.close();
      throw storeError(error, dataDir);
    }
    const names = [databaseName, `${databaseName}-wal`]; // another owner is found by its rows
    this.#files = new OpenFilesCheck(dataDir, names, { lookMs });
  }

  /** Runs a statement that gives no rows. */
  run(sql: string, ...values: SqlValue[]): void {
    this.statements++;
    this.#prepared(sql).run(...values);
    for (const value of values) if (value instanceof Uint8Array) this.#loggedBytes += value.byteLength;
    this.#loggedBytes += pageBytes;
  }

  get(sql: string, ...values: SqlValue[]): SqlRow | undefined {
    this.statements++;
    return this.#prepared(sql).get(...values) as SqlRow | undefined;
  }

  all(sql: string, ...values: SqlValue[]): SqlRow[] {
    this.statements++;
    return this.#prepared(sql).all(...values) as SqlRow[];
  }

  /** A new row; `replace`: in the place of one with the same key. */
  insert<Column extends string>(table: ChecksumTable<Column>, row: Readonly<Record<Column, SqlValue>>): void {
    this.run(table.insert, ...table.bind(row));
  }

  replace<Column extends string>(table: ChecksumTable<Column>, row: Readonly<Record<Column, SqlValue>>): void {
    this.run(table.replace, ...table.bind(row));
  }

  /** Clients whose puts cannot be looked up, as the store was when it was opened, or repaired last. */
  get damagedIndexes(): ReadonlySet<number> | "all" {
    return this.#damagedIndexes ??= clientsOfDamagedIndexes(this);
  }

  checkIndexesAgain(): void {
    this.#damagedIndexes = null;
  }

  /** Random, made with the store: names it for as long as it lives. Throws Damaged. */
  get storeId(): string {
    const { store } = tables;
    const row = this.get(`SELECT ${store.allColumns} FROM store`) ?? {};
    return String(this.damage.checked(store, row, "of this folder")["name"]);
  }

  get inTransaction(): boolean {
    return this.#isOpen;
  }

  /** Begins a transaction unless one is open. Throws when another process has opened the rows since. */
  begin(): void {
    if (this.#isOpen) return;
    this.#files.check();
    this.#prepared("BEGIN IMMEDIATE").run();
    this.#isOpen = true;
    this.confirm(); // in the transaction: whoever opens the rows after it finds what it stored
  }

  /** When it returns, everything since `begin` is on the disk. When it throws, nobody can say whether it is. */
  commit(): void {
    if (!this.#isOpen) return;
    this.#prepared("COMMIT").run();
    this.#isOpen = false;
    this.commits++;
  }

  /** Work in the open transaction: all of it is done, or, where SQLite finds its pages damaged, nothing; then gives its sentence. */
  unlessDamaged(work: () => void): string | null {
    this.#prepared("SAVEPOINT work").run();
    try {
      work();
      this.#prepared("RELEASE work").run();
      return null;
    } catch (error) {
      // Two rows that are the same to an index were not stored so.
      if (!isDamage(error) && !messageOf(error).startsWith("UNIQUE constraint failed")) throw error;
      this.#database.exec("ROLLBACK TO work; RELEASE work");
      return messageOf(error);
    }
  }

  /** Undoes what was begun. After a full disk SQLite may have done so itself. */
  rollBack(): void {
    this.#isOpen = false;
    try {
      this.#database.exec("ROLLBACK");
    } catch {
      // nothing is under way
    }
  }

  /** The next commit looks at the files, however new the last look is. */
  lookAgain(): void {
    this.#files.invalidate();
  }

  confirm(): void {
    if (this.#prepared("SELECT name FROM owner").get()?.["name"] !== this.#name) {
      throw new StoreLost(`Another server has opened the topic store in ${this.dataDir} since`);
    }
  }

  /** What was written since the last checkpoint, at most: neighbours share a page. */
  get loggedBytes(): number {
    return this.#loggedBytes;
  }

  /** Copies the log into the database, as far as there is room in it: the rest stays where it is, and is there. */
  checkpoint(): void {
    try {
      this.#database.exec("PRAGMA wal_checkpoint(PASSIVE)");
    } catch (error) {
      if (!isDiskFull(error)) throw error;
    }
    this.#loggedBytes = 0;
  }

  /** Gives up to `pages` unused pages back to the file system; whether there may be more. */
  shrink(pages: number): boolean {
    const free = Number(this.get("PRAGMA freelist_count")?.["freelist_count"] ?? 0);
    if (free === 0) return false;
    try {
      this.#database.exec(`PRAGMA incremental_vacuum(${pages})`);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      return false; // it would take some room to give some back
    }
    this.#loggedBytes += pages * pageBytes;
    return free > pages;
  }

  /** A burst has made the log's file longer than it will be kept. */
  get hasLongLog(): boolean {
    return (statSync(join(this.dataDir, `${databaseName}-wal`), { throwIfNoEntry: false })?.size ?? 0) >= 2 * logBytes;
  }

  /** Makes it short, if nobody else reads or copies it just now. */
  shortenLog(): void {
    this.#database.exec("PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA busy_timeout = 5000");
    this.#loggedBytes = 0;
  }

  /** Makes the log's file as long as it will be. SQLite believes only what carries the salt of its header and a checksum. */
  reserveLog(): void {
    reserveFile(join(this.dataDir, `${databaseName}-wal`), logBytes);
  }

  /** Bytes of the database that hold something. */
  usedBytes(): number {
    const pages = Number(this.get("PRAGMA page_count")?.["page_count"] ?? 0);
    return (pages - Number(this.get("PRAGMA freelist_count")?.["freelist_count"] ?? 0)) * pageBytes;
  }

  /** What the file system has room for, and what of it is free for this user, in bytes. */
  fileSystem(): { readonly bytes: number; readonly freeBytes: number } {
    const { bsize, blocks, bavail } = statfsSync(this.dataDir);
    return { bytes: blocks * bsize, freeBytes: bavail * bsize };
  }

  close(): void {
    try {
      this.#database.close();
    } finally {
      this.#owner.close();
    }
  }

  #prepared(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) this.#statements.set(sql, statement = this.#database.prepare(sql));
    return statement;
  }
}

/**
 * Opens the rows to read them, beside an owner or without one. Nothing is changed, and the log is not copied into the database
 * when they are closed: a damaged one would be gone, with what it was the sign of. Throws CONFIG where there is no store of a
 * known format.
 */
export function openToRead(dataDir: string): DatabaseSync {
  const path = join(dataDir, databaseName);
  if (!existsSync(path)) {
    throw new BatonError("CONFIG", `There is no topic store in ${dataDir}: ${databaseName} is missing`);
  }
  try {
    const database = new DatabaseSync(path, { readOnly: true });
    database.exec("PRAGMA busy_timeout = 5000");
    checkFormat(database, dataDir);
    if (isEmpty(database)) {
      database.close();
      throw new BatonError("CONFIG", `There is no topic store in ${dataDir}: ${databaseName} is empty, it was cut off`);
    }
    return database;
  } catch (error) {
    throw storeError(error, dataDir);
  }
}

/** A store names its form in the transaction that makes its tables. */
function isEmpty(database: DatabaseSync): boolean {
  return Number(database.prepare("PRAGMA application_id").get()?.["application_id"] ?? 0) === 0;
}

/**
 * SQLITE_FULL: a write found no room. It comes before the last frame of a commit is in the log, so nothing of it is stored; a
 * flush that fails, for whatever reason, is another error.
 */
export function isDiskFull(error: unknown): boolean {
  return error instanceof Error && !(error instanceof BatonError) && /database or disk is full/.test(error.message);
}

/** What went wrong with the store in `dataDir`, as a failure with a sentence. */
export function storeError(error: unknown, dataDir: string): BatonError {
  if (error instanceof BatonError) return error;
  if (error instanceof StoreLost) return new BatonError("LOCK_BUSY", error.message);
  const message = error instanceof Error ? error.message : String(error);
  return new BatonError("IO", `The topic store in ${dataDir} cannot be read or written: ${message}`, { cause: error });
}

function openRows(dataDir: string, owner: string): DatabaseSync {
  const path = join(dataDir, databaseName);
  createPrivateFile(path);
  const database = new DatabaseSync(path);
  try {
    // Before the first table: so that a file can become shorter again.
    database.exec("PRAGMA busy_timeout = 5000; PRAGMA auto_vacuum = INCREMENTAL");
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0");
    database.exec(`PRAGMA journal_size_limit = ${2 * checkpointAtOnceBytes}; PRAGMA cache_size = -16384`);
    checkFormat(database, dataDir);
    const name = crypto.randomUUID();
    database.exec(`BEGIN IMMEDIATE; ${schema}
      INSERT OR REPLACE INTO owner (id, name) VALUES (0, '${owner}');
      INSERT OR IGNORE INTO store (id, name, sum) VALUES (0, '${name}', ${tables.store.sumOf({ id: 0, name })});
      PRAGMA user_version = ${storedFormat}; PRAGMA application_id = ${applicationId};
      COMMIT`);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function checkFormat(database: DatabaseSync, dataDir: string): void {
  const path = join(dataDir, databaseName);
  checkSqliteFormat(database, { what: "topic store", folder: dataDir, path, applicationId, format: storedFormat });
}

function damagedLog(dataDir: string, damage: string): string {
  return `The topic store in ${dataDir} cannot be opened: ${damage}. What was answered OK from there on can no longer be read. ` +
    "Put a backup in its place; where there is none, baton pubsub server restore --id ID --data-dir FOLDER --accept-loss goes " +
    "on with what is left";
}

/** Locked until it is closed or the process is gone, however that happens. */
function own(dataDir: string): DatabaseSync {
  const path = join(dataDir, ownerName);
  createPrivateFile(path); // who could read it could lock it
  const database = new DatabaseSync(path);
  try {
    database.exec("BEGIN EXCLUSIVE");
    return database;
  } catch (error) {
    database.close();
    if (!/locked|busy/i.test(String(error))) throw error;
    throw new BatonError("LOCK_BUSY", `Another server uses the topic store in ${dataDir}`);
  }
}

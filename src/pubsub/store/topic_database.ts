/**
 * The files of a topic store: one SQLite database with the data, and a second one that is only locked, so that a data
 * directory has one owner while other processes may read it (backup, verify). If the second file is deleted, another
 * process can become the owner: the database names its last owner, and only that one writes. Synchronous: used in the
 * storage thread.
 */
import { existsSync, mkdirSync, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { BatonError, messageOf } from "../../errors.ts";
import { OpenFilesCheck } from "../../storage/open_files_check.ts";
import { createPrivateFile, flushParentFolders, reserveFile } from "../../storage/durable_file.ts";
import { checkSqliteFormat } from "../../storage/sqlite_format.ts";
import { damageInLog } from "../../storage/wal_check.ts";
import type { SqlRow, SqlValue } from "../../storage/sql_row.ts";
import { type ChecksumTable, isDamage } from "../../storage/checksum_table.ts";
import { DamageLog, orIfDamaged } from "../../storage/damage.ts";
import { applicationId, schema, storedFormat, tables } from "./topic_tables.ts";

export const databaseName = "topics.sqlite";
export const ownerName = "owner.sqlite";

/** Reserved size of the write-ahead log. A flush that extends a file takes twice as long. */
const logBytes = 8 << 20;
/** The log is copied into the database by `topic_store_checkpoint_worker.ts` from this size on … */
export const checkpointBytes = 4 << 20;
/** … and from this size on by the storage thread, which waits for it. */
export const blockingCheckpointBytes = 32 << 20;
const pageBytes = 4096;
/** Maximum age of the check that the files are in place when something is committed, in milliseconds. */
const checkMs = 100;

/** Another process owns the data now. */
export class StoreTakenOver extends Error {}

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
  /** Damage found so far. */
  readonly damage = new DamageLog();
  /** Executed statements: a measure of cost in tests. */
  statements = 0;
  commits = 0;

  /**
   * Throws LOCK_BUSY if another process owns the directory, CONFIG for another format, IO otherwise. A damaged log is
   * an IO error unless `acceptDamagedLog` allows to lose what SQLite cannot read of it.
   */
  constructor(dataDir: string, { acceptDamagedLog = false }: { readonly acceptDamagedLog?: boolean } = {}) {
    this.dataDir = dataDir;
    try {
      mkdirSync(dataDir, { recursive: true, mode: 0o700 });
      this.#owner = lockDirectory(dataDir);
    } catch (error) {
      throw storeError(error, dataDir);
    }
    try {
      // SQLite would silently ignore the damaged part: messages that were answered OK would be lost.
      const damage = acceptDamagedLog ? null : damageInLog(join(dataDir, databaseName));
      if (damage !== null) throw new BatonError("IO", damagedLogMessage(dataDir, damage));
      this.#database = openDatabase(dataDir, this.#name);
    } catch (error) {
      this.#owner.close();
      throw storeError(error, dataDir);
    }
    const names = [databaseName, `${databaseName}-wal`]; // another owner is found by its rows
    this.#files = new OpenFilesCheck(dataDir, names, { checkMs });
  }

  /** Executes a statement without result rows. */
  run(sql: string, ...values: SqlValue[]): number {
    this.statements++;
    const { changes } = this.#statement(sql).run(...values);
    for (const value of values) if (value instanceof Uint8Array) this.#loggedBytes += value.byteLength;
    this.#loggedBytes += pageBytes;
    return Number(changes);
  }

  get(sql: string, ...values: SqlValue[]): SqlRow | undefined {
    this.statements++;
    return this.#statement(sql).get(...values) as SqlRow | undefined;
  }

  all(sql: string, ...values: SqlValue[]): SqlRow[] {
    this.statements++;
    return this.#statement(sql).all(...values) as SqlRow[];
  }

  /** Inserts a row; `replace` overwrites one with the same key. */
  insert<Column extends string>(table: ChecksumTable<Column>, row: Readonly<Record<Column, SqlValue>>): void {
    this.run(table.insert, ...table.valuesToBind(row));
  }

  replace<Column extends string>(table: ChecksumTable<Column>, row: Readonly<Record<Column, SqlValue>>): void {
    this.run(table.replace, ...table.valuesToBind(row));
  }

  /** Clients whose puts cannot be looked up, as found when the store was opened or last repaired. */
  get damagedIndexes(): ReadonlySet<number> | "all" {
    return this.#damagedIndexes ??= clientsOfDamagedIndexes(this);
  }

  checkIndexesAgain(): void {
    this.#damagedIndexes = null;
  }

  /** Random id, created with the store. Throws Damaged. */
  get storeId(): string {
    const { store } = tables;
    const row = this.get(`SELECT ${store.allColumns} FROM store`) ?? {};
    return String(this.damage.requireIntactRow(store, row, "of this store")["name"]);
  }

  get inTransaction(): boolean {
    return this.#isOpen;
  }

  /** Begins a transaction unless one is open. Throws if another process has opened the data since. */
  begin(): void {
    if (this.#isOpen) return;
    this.#files.check();
    this.#statement("BEGIN IMMEDIATE").run();
    this.#isOpen = true;
    this.requireOwnership(); // inside the transaction, so that a new owner sees what it stored
  }

  /** Everything since `begin` is durable when it returns. When it throws, the outcome is unknown. */
  commit(): void {
    if (!this.#isOpen) return;
    this.#statement("COMMIT").run();
    this.#isOpen = false;
    this.commits++;
  }

  /**
   * Runs work in the open transaction. If SQLite finds damaged pages, undoes the work and returns the error's text;
   * otherwise null.
   */
  runUnlessDamaged(work: () => void): string | null {
    this.#statement("SAVEPOINT work").run();
    try {
      work();
      this.#statement("RELEASE work").run();
      return null;
    } catch (error) {
      // A unique index cannot contain two equal rows unless it is damaged.
      if (!isDamage(error) && !messageOf(error).startsWith("UNIQUE constraint failed")) throw error;
      this.#database.exec("ROLLBACK TO work; RELEASE work");
      return messageOf(error);
    }
  }

  /** Rolls back. After a full disk SQLite may have done so itself. */
  rollBack(): void {
    this.#isOpen = false;
    try {
      this.#database.exec("ROLLBACK");
    } catch {
      // no transaction is open
    }
  }

  /** The next commit checks the files again, however recent the last check is. */
  invalidateFileCheck(): void {
    this.#files.invalidate();
  }

  requireOwnership(): void {
    if (this.#statement("SELECT name FROM owner").get()?.["name"] !== this.#name) {
      throw new StoreTakenOver(`Another server has opened the topic store in ${this.dataDir}`);
    }
  }

  /** Upper bound of bytes in the log since the last checkpoint: neighboring rows share a page. */
  get loggedBytes(): number {
    return this.#loggedBytes;
  }

  /** Copies the log into the database as far as there is space. The rest stays readable in the log. */
  checkpoint(): void {
    try {
      this.#database.exec("PRAGMA wal_checkpoint(PASSIVE)");
    } catch (error) {
      if (!isDiskFull(error)) throw error;
    }
    this.#loggedBytes = 0;
  }

  /** Returns up to `pages` unused pages to the file system. Returns whether there may be more. */
  shrink(pages: number): boolean {
    const free = Number(this.get("PRAGMA freelist_count")?.["freelist_count"] ?? 0);
    if (free === 0) return false;
    try {
      this.#database.exec(`PRAGMA incremental_vacuum(${pages})`);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      return false; // giving space back needs some space first
    }
    this.#loggedBytes += pages * pageBytes;
    return free > pages;
  }

  /** A burst of writes has made the log larger than its reserved size. */
  get hasLongLog(): boolean {
    return (statSync(join(this.dataDir, `${databaseName}-wal`), { throwIfNoEntry: false })?.size ?? 0) >= 2 * logBytes;
  }

  /** Truncates the log, if no other process reads it at the moment. */
  shortenLog(): void {
    this.#database.exec("PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA busy_timeout = 5000");
    this.#loggedBytes = 0;
  }

  /** Extends the log to its reserved size. SQLite ignores frames without the right salt and checksum. */
  reserveLog(): void {
    reserveFile(join(this.dataDir, `${databaseName}-wal`), logBytes);
  }

  /** Used bytes of the database. */
  usedBytes(): number {
    const pages = Number(this.get("PRAGMA page_count")?.["page_count"] ?? 0);
    return (pages - Number(this.get("PRAGMA freelist_count")?.["freelist_count"] ?? 0)) * pageBytes;
  }

  /** Size and free space (for this user) of the file system, in bytes. */
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

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) this.#statements.set(sql, statement = this.#database.prepare(sql));
    return statement;
  }
}

/**
 * Opens the database for reading, with or without an owner. Nothing is changed and no checkpoint is made at the end: it
 * would remove a damaged log and the evidence of it. Throws CONFIG if there is no store of a known format.
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
      throw new BatonError("CONFIG", `There is no topic store in ${dataDir}: ${databaseName} is empty or truncated`);
    }
    return database;
  } catch (error) {
    throw storeError(error, dataDir);
  }
}

/** The format is set in the transaction that creates the tables. */
function isEmpty(database: DatabaseSync): boolean {
  return Number(database.prepare("PRAGMA application_id").get()?.["application_id"] ?? 0) === 0;
}

/**
 * SQLITE_FULL: a write found no space. It occurs before the last frame of a commit is in the log, so nothing was
 * stored. A failed flush is another error.
 */
export function isDiskFull(error: unknown): boolean {
  return error instanceof Error && !(error instanceof BatonError) && /database or disk is full/.test(error.message);
}

/** Converts an error of the store in `dataDir` to a BatonError. */
export function storeError(error: unknown, dataDir: string): BatonError {
  if (error instanceof BatonError) return error;
  if (error instanceof StoreTakenOver) return new BatonError("LOCK_BUSY", error.message);
  const message = `The topic store in ${dataDir} cannot be read or written: ${messageOf(error)}`;
  return new BatonError("IO", message, { cause: error });
}

function openDatabase(dataDir: string, owner: string): DatabaseSync {
  const path = join(dataDir, databaseName);
  createPrivateFile(path);
  const database = new DatabaseSync(path);
  try {
    // Set before the first table is created, so that the file can shrink later.
    database.exec("PRAGMA busy_timeout = 5000; PRAGMA auto_vacuum = INCREMENTAL");
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0");
    database.exec(`PRAGMA journal_size_limit = ${2 * blockingCheckpointBytes}; PRAGMA cache_size = -16384`);
    checkFormat(database, dataDir);
    const name = crypto.randomUUID();
    database.exec(`BEGIN IMMEDIATE; ${schema}
      INSERT OR REPLACE INTO owner (id, name) VALUES (0, '${owner}');
      INSERT OR IGNORE INTO store (id, name, sum) VALUES (0, '${name}', ${tables.store.checksumOfRow({ id: 0, name })});
      PRAGMA user_version = ${storedFormat}; PRAGMA application_id = ${applicationId};
      COMMIT`);
    // New directory entries are flushed before any response depends on the files.
    flushParentFolders(dataDir);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function checkFormat(database: DatabaseSync, dataDir: string): void {
  const path = join(dataDir, databaseName);
  checkSqliteFormat(database, {
    what: "topic store",
    folder: dataDir,
    path,
    applicationId,
    format: storedFormat,
    schema,
  });
}

function damagedLogMessage(dataDir: string, damage: string): string {
  return `The topic store in ${dataDir} cannot be opened: ${damage}. Later messages cannot be read. ` +
    "Put a backup in its place; if there is none, continue with the readable part: " +
    "baton pubsub server restore --id ID --data-dir FOLDER --accept-loss";
}

/** Locks the directory until the file is closed or the process ends. */
function lockDirectory(dataDir: string): DatabaseSync {
  const path = join(dataDir, ownerName);
  createPrivateFile(path); // a user that can read it could lock it
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

/** Indexes for clients' puts. SQLite does not compare them with their tables. */
const putIndexes = [
  { table: "resolved", index: "resolved_window", columns: "id, client, session" },
  { table: "msg_ids", index: "msg_ids_client", columns: "id, client" },
] as const;

/**
 * Ids of clients with a row that only the index or only the table has; "all": the index cannot be read. If an index does
 * not find a row, its checksum is never checked, and a repeated put would be stored again.
 */
function clientsOfDamagedIndexes(database: TopicDatabase): ReadonlySet<number> | "all" {
  const find = () =>
    putIndexes.flatMap((check) => indexAgrees(database, check) ? [] : findDifferences(database, check));
  const rows = orIfDamaged("all", find, isDamage);
  return rows === "all" ? rows : new Set(rows.map(({ client }) => Number(client)));
}

/** Comparing sums takes a tenth of the time of comparing rows. */
function indexAgrees(database: TopicDatabase, { table, index, columns }: (typeof putIndexes)[number]): boolean {
  const mixed = columns.split(", ").map((column, state) => `${column} * ${[7919, 104_729, 1_299_709][state]}`).join(
    " + ",
  );
  const sum = (how: string) => `(SELECT sum((${mixed}) & 0xffffffff) FROM ${table} ${how})`;
  return Number(
    database.all(`SELECT ${sum("NOT INDEXED")} IS ${sum(`INDEXED BY ${index}`)} AS agrees`)[0]?.["agrees"],
  ) === 1;
}

function findDifferences(database: TopicDatabase, { table, index, columns }: (typeof putIndexes)[number]): SqlRow[] {
  const rows = (how: string) => `SELECT ${columns} FROM ${table} ${how}`;
  const [stored, found] = [rows("NOT INDEXED"), rows(`INDEXED BY ${index}`)];
  const either = `SELECT client FROM (${stored} EXCEPT ${found}) UNION SELECT client FROM (${found} EXCEPT ${stored})`;
  return database.all(`SELECT client FROM (${either}) WHERE client BETWEEN 0 AND ${Number.MAX_SAFE_INTEGER}`);
}

/**
 * One SQLite file of a store, open: its owner, format, statements, transactions, log and size. Tables, and what their
 * rows mean, belong to the product. Synchronous: services use it in a storage thread (storage_thread.ts).
 */
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statfsSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { refuseLinksOfOthers } from "../support/open_output.ts";
import type { WorkProgress } from "../support/work_progress.ts";
import { blockThreadFor } from "../support/write_whole.ts";
import type { ChecksumTable } from "./checksum_table.ts";
import type { DiskSpace } from "./disk_space.ts";
import { createPrivateFile, flushParentFolders, flushPathIfPresent, reserveFile } from "./durable_file.ts";
import type { SqlRow, SqlValue } from "./sql_row.ts";
import { checkSqliteFormat, readSqlitePragma, type SqliteFormat } from "./sqlite_format.ts";
import { storeOwnerFileName } from "./file_lock_holder.ts";
import { isDatabaseLocked, isDiskFullError } from "./storage_error.ts";

export const sqlitePageBytes = 4096;
/** Maximum age of the check that the files are in place when a transaction begins, in milliseconds. */
const checkMs = 100;
/** Pause between attempts to open a locked file, in milliseconds. */
const pauseMs = 10;

export interface SqliteFileOptions {
  readonly format: SqliteFormat;
  /** How long a transaction, or the opening, waits for other processes, in milliseconds. */
  readonly busyMs: number;
  /** Settings of the connection besides WAL and flushed commits. */
  readonly pragmas: string;
  /** Called before the folder is used. */
  readonly makeFolder?: () => void;
  /** Called before SQLite opens the file: creates it, checks its log. With an owner, only the owner calls it. */
  readonly prepare: () => void;
  /** Called when the format is known and nothing is written yet. */
  readonly inspect?: (database: DatabaseSync) => void;
  /** Runs in the transaction that creates the tables; in an owned file, in one whenever it is opened. */
  readonly addFirstRows?: (database: DatabaseSync) => void;
  /** One process owns the folder, and only that one writes. Default: several processes share the file. */
  readonly owner?: SqliteOwner;
  /** The error of the constructor. Default: the error itself. */
  readonly openError?: (error: unknown) => unknown;
  /** Whether a transaction checks that the file and its log still have their names. */
  readonly checksFiles?: boolean;
}

export interface SqliteOwner {
  /** The column of the table `owner`. */
  readonly column: string;
  /** The error of a process that finds another owner. */
  readonly busy: () => Error;
  /** The error of an owner that finds a later one. */
  readonly takenOver: () => Error;
}

export class SqliteFile implements Disposable {
  /** The connection, for work on the file as a whole. */
  readonly database: DatabaseSync;
  readonly folder: string;
  readonly #path: string;
  readonly #logPath: string;
  readonly #owner: SqliteOwner | undefined;
  readonly #ownerLock: DatabaseSync | null;
  /** This owner's name in the database; random, because a copy would repeat a number. */
  readonly #ownerId = crypto.randomUUID();
  readonly #files: OpenFilesCheck | null;
  readonly #statements = new Map<string, StatementSync>();
  #inTransaction = false;
  #loggedBytes = 0;
  /** The same when the open transaction began. */
  #loggedBefore = 0;
  /** Executed statements: a measure of cost in tests. */
  statements = 0;
  commits = 0;

  /**
   * Throws the errors of `busy` and `prepare`, CONFIG for another format or program, and the errors of SQLite and of
   * the system.
   */
  constructor(options: SqliteFileOptions) {
    const { format: { folder, path }, owner, openError = (error) => error, checksFiles = false } = options;
    this.folder = folder;
    this.#path = path;
    this.#logPath = `${path}-wal`;
    this.#owner = owner;
    let lock: DatabaseSync | null = null;
    try {
      options.makeFolder?.();
      if (owner !== undefined) lock = lockFolder(folder, owner);
      // SQLite takes what a killed process has written for stored, and writes behind it, also if it was never flushed.
      flushPathIfPresent(this.#logPath);
      options.prepare();
      this.database = repeatWhileLocked(options.busyMs, () => openTables(options, this.#ownerId));
    } catch (error) {
      lock?.close();
      throw openError(error);
    }
    this.#ownerLock = lock;
    this.#files = checksFiles
      ? new OpenFilesCheck(folder, [basename(path), basename(this.#logPath)], { checkMs })
      : null;
  }

  /** Returns the number of changed rows. */
  run(sql: string, ...values: (SqlValue | bigint)[]): number {
    this.statements++;
    const { changes } = this.statement(sql).run(...values);
    for (const value of values) if (value instanceof Uint8Array) this.#loggedBytes += value.byteLength;
    this.#loggedBytes += sqlitePageBytes;
    return Number(changes);
  }

  get(sql: string, ...values: SqlValue[]): SqlRow | undefined {
    this.statements++;
    return this.statement(sql).get(...values) as SqlRow | undefined;
  }

  all(sql: string, ...values: SqlValue[]): SqlRow[] {
    this.statements++;
    return this.statement(sql).all(...values) as SqlRow[];
  }

  insert<Column extends string>(table: ChecksumTable<Column>, row: Readonly<Record<Column, SqlValue>>): void {
    this.run(table.insert, ...table.valuesToBind(row));
  }

  /** Overwrites a row with the same key. */
  replace<Column extends string>(table: ChecksumTable<Column>, row: Readonly<Record<Column, SqlValue>>): void {
    this.run(table.replace, ...table.valuesToBind(row));
  }

  get inTransaction(): boolean {
    return this.#inTransaction;
  }

  /** Begins a transaction unless one is open. Throws if the file was replaced, or has another owner. */
  begin(): void {
    if (this.#inTransaction) return;
    this.#files?.check();
    this.statement("BEGIN IMMEDIATE").run();
    this.#inTransaction = true;
    this.#loggedBefore = this.#loggedBytes;
    this.requireOwnership(); // inside the transaction, so that a new owner sees what it stored
  }

  /**
   * Everything since `begin` is durable when it returns. When it throws, the outcome is unknown, unless the disk is
   * full.
   */
  commit(): void {
    if (!this.#inTransaction) return;
    this.statement("COMMIT").run();
    this.#inTransaction = false;
    this.commits++;
  }

  /** Rolls back. After a full disk SQLite may have done so itself. */
  rollBack(): void {
    this.#inTransaction = false;
    try {
      this.database.exec("ROLLBACK");
    } catch {
      // no transaction is open
    }
  }

  /** Runs `work` in a transaction that is durable when it returns. Nothing is stored when `work` throws. */
  transaction<Result>(work: () => Result): Result {
    try {
      this.begin();
      const result = work();
      this.commit();
      return result;
    } catch (error) {
      this.rollBack();
      throw error;
    }
  }

  /** Throws when another process has opened the file as its owner since. */
  requireOwnership(): void {
    if (this.#owner === undefined) return;
    const { column, takenOver } = this.#owner;
    if (this.statement(`SELECT ${column} AS id FROM owner`).get()?.["id"] !== this.#ownerId) throw takenOver();
  }

  /** The next transaction checks the files again, however recent the last check is. */
  invalidateFileCheck(): void {
    this.#files?.invalidate();
  }

  /** Upper bound of bytes in the log since the last checkpoint: neighboring rows share a page. */
  get loggedBytes(): number {
    return this.#loggedBytes;
  }

  /** Counts bytes in the log; negative after those that are no longer in it. */
  protected countLogged(bytes: number): void {
    this.#loggedBytes += bytes;
  }

  /** Copies the log into the database; TRUNCATE then empties it. */
  checkpoint(mode: "PASSIVE" | "FULL" | "TRUNCATE" = "PASSIVE"): void {
    this.database.exec(`PRAGMA wal_checkpoint(${mode})`);
    this.#loggedBytes = 0;
  }

  /**
   * Extends the log to its reserved size, because a flush that extends a file takes twice as long. SQLite ignores
   * frames without the right salt and checksum. Does nothing on a disk that has not twice this space.
   */
  reserveLog(bytes: number): void {
    if (this.space().freeBytes >= 2 * bytes) reserveFile(this.#logPath, bytes);
  }

  /** Size of the log's file, which may be longer than the log. */
  get logFileBytes(): number {
    return statSync(this.#logPath, { throwIfNoEntry: false })?.size ?? 0;
  }

  pragma(name: string): number {
    return Number(this.get(`PRAGMA ${name}`)?.[name] ?? 0);
  }

  /** Used bytes of the database. */
  usedBytes(): number {
    return (this.pragma("page_count") - this.pragma("freelist_count")) * sqlitePageBytes;
  }

  /** Size and free space (for this user) of the file system, in bytes; zeros if the folder was removed. */
  fileSystem(): { readonly bytes: number; readonly freeBytes: number } {
    try {
      const { bsize, blocks, bavail } = statfsSync(this.folder);
      return { bytes: blocks * bsize, freeBytes: bavail * bsize };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      return { bytes: 0, freeBytes: 0 };
    }
  }

  space(): DiskSpace {
    const { bytes, freeBytes } = this.fileSystem();
    const unwritten = this.#inTransaction ? this.#loggedBytes - this.#loggedBefore : 0;
    const unusedBytes = this.pragma("freelist_count") * sqlitePageBytes;
    return {
      bytes,
      freeBytes: freeBytes - unwritten - this.owedBytes,
      usedBytes: this.pragma("page_count") * sqlitePageBytes - unusedBytes,
      unusedBytes,
    };
  }

  /** Bytes by which the file grows when all of the log is in it. */
  get owedBytes(): number {
    const fileBytes = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
    return Math.max(0, this.pragma("page_count") * sqlitePageBytes - fileBytes);
  }

  /** Does work that belongs to the opening: the file, and its locks, are closed when it fails. */
  closeIfFails<Result>(work: () => Result): Result {
    try {
      return work();
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** `closed`: called while the process still owns the folder. */
  close(closed: () => void = () => {}): void {
    try {
      this.database.close();
      closed();
    } finally {
      this.#ownerLock?.close();
    }
  }

  [Symbol.dispose](): void {
    this.close();
  }

  protected statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) this.#statements.set(sql, statement = this.database.prepare(sql));
    return statement;
  }
}

/** Locks the folder until the file is closed or the process ends. */
function lockFolder(folder: string, { busy }: SqliteOwner): DatabaseSync {
  const path = join(folder, storeOwnerFileName);
  // A user that can read it could lock it. Closing a file that is open here would release SQLite's locks on it
  // (fcntl(2)).
  if (!existsSync(path)) createPrivateFile(path);
  const database = new DatabaseSync(path);
  try {
    database.exec("BEGIN EXCLUSIVE");
    return database;
  } catch (error) {
    database.close();
    throw isDatabaseLocked(error) ? busy() : error;
  }
}

/** SQLite does not wait for the switch to a write-ahead log. */
function repeatWhileLocked<Result>(busyMs: number, open: () => Result): Result {
  const startMs = performance.now();
  for (;;) {
    try {
      return open();
    } catch (error) {
      if (!isDatabaseLocked(error) || performance.now() - startMs >= busyMs) throw error;
      blockThreadFor(pauseMs);
    }
  }
}

function openTables(options: SqliteFileOptions, ownerId: string): DatabaseSync {
  const { format, busyMs, pragmas, inspect, addFirstRows, owner } = options;
  const database = new DatabaseSync(format.path);
  try {
    database.exec(`PRAGMA busy_timeout = ${busyMs}; ${pragmas}`);
    checkSqliteFormat(database, format); // before anything in another program's file is changed
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    inspect?.(database);
    const isNew = readSqlitePragma(database, "user_version") === 0;
    // The folders are on the disk before the file has content, so that a process that finds content need not flush
    // them.
    if (isNew) flushParentFolders(format.folder);
    if (!isNew && owner === undefined) return database;
    const write = () => {
      database.exec("BEGIN IMMEDIATE");
      checkSqliteFormat(database, format); // another process may have created the tables meanwhile
      database.exec(format.schema);
      addFirstRows?.(database);
      if (owner !== undefined) {
        database.prepare(`INSERT OR REPLACE INTO owner (id, ${owner.column}) VALUES (0, ?)`).run(ownerId);
      }
      database.exec(`PRAGMA user_version = ${format.format}; PRAGMA application_id = ${format.applicationId}; COMMIT`);
    };
    retryWithEmptyLog(database, write);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Empties the log if a full disk has no room for a transaction behind what is in it. */
function retryWithEmptyLog(database: DatabaseSync, write: () => void): void {
  try {
    write();
  } catch (error) {
    if (!isDiskFullError(error)) throw error;
    try {
      database.exec("ROLLBACK");
    } catch {
      // SQLite has done so itself
    }
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    write();
  }
}

/**
 * Copies a snapshot of a database into a new file, which is on the disk when this returns. After an error there is
 * none. The copy has another name (`path`.part) until it is complete, so that an interrupted copy is never taken for
 * one. Throws EEXIST if a file has that name: another copy is being made or was interrupted. `read`: calls its argument
 * with the database.
 */
export function copySqliteDatabase(read: (copy: (database: DatabaseSync) => void) => void, path: string, options: {
  /** Changes the copy before it is flushed. */
  readonly complete?: (part: string) => void;
  /** Reads the copy back, and throws if it is damaged. */
  readonly check: (copy: DatabaseSync) => void;
  readonly progress: WorkProgress;
}): void {
  refuseLinksOfOthers(dirname(path));
  const part = `${path}.part`;
  const file = openSync(part, "wx", 0o600);
  let made = part;
  try {
    read((database) => {
      options.progress.startPart({ noun: null, verb: "copying the database", total: null });
      database.prepare("VACUUM INTO ?").run(part); // accepts an empty file, and does not flush it
    });
    options.complete?.(part);
    fsyncSync(file);
    checkCopy(part, options.check);
    renameSync(part, path);
    made = path;
    flushParentFolders(dirname(path));
  } catch (error) {
    for (const name of [made, `${made}-journal`]) rmSync(name, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
}

function checkCopy(part: string, check: (copy: DatabaseSync) => void): void {
  using copy = new DatabaseSync(part, { readOnly: true });
  check(copy);
}

/** Checks that open files still have their names: writes to removed files are lost. */
class OpenFilesCheck {
  readonly #folder: string;
  readonly #checkMs: number;
  readonly #inodes: ReadonlyMap<string, bigint | null>;
  #checkedMs = -Infinity;

  /** Create it when the files are open. `checkMs`: the maximum age of a check, in milliseconds. */
  constructor(folder: string, names: readonly string[], { checkMs }: { readonly checkMs: number }) {
    this.#folder = folder;
    this.#checkMs = checkMs;
    this.#inodes = new Map(names.map((name) => [name, inodeOf(folder, name)]));
  }

  /** Checks the files, unless the last check is recent. Throws when a file is gone or was replaced. */
  check(): void {
    const nowMs = performance.now();
    if (nowMs - this.#checkedMs < this.#checkMs) return;
    this.#checkedMs = nowMs;
    for (const [name, inode] of this.#inodes) {
      if (inodeOf(this.#folder, name) === inode) continue;
      throw new Error(`${name} was removed or replaced while it was in use`);
    }
  }

  /** Makes the next call of `check` check the files. */
  invalidate(): void {
    this.#checkedMs = -Infinity;
  }
}

/** The file's inode; null when the file cannot be seen. */
function inodeOf(folder: string, name: string): bigint | null {
  return statSync(join(folder, name), { bigint: true, throwIfNoEntry: false })?.ino ?? null;
}

/**
 * An open SQLite file of a store. Handles its owner, format, statements, transactions, log and size; the caller defines
 * the tables. All calls block, so services use this class in a storage thread (storage_thread.ts).
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
/** How long a transaction relies on the last check that the files are in place, in milliseconds. */
const checkMs = 100;
/** The pause between attempts to open a locked file, in milliseconds. */
const pauseMs = 10;

export interface SqliteFileOptions {
  readonly format: SqliteFormat;
  /** How long opening the file, or a transaction, waits for other processes, in milliseconds. */
  readonly busyMs: number;
  /** Further PRAGMA statements, besides those for WAL and flushed commits. */
  readonly pragmas: string;
  /** Called before the folder is used. */
  readonly makeFolder?: () => void;
  /**
   * Called before SQLite opens the file. The function creates the file, or checks its log. In an owned store, only the
   * owner calls it.
   */
  readonly prepare: () => void;
  /** Called after the format was checked, before anything is written. */
  readonly inspect?: (database: DatabaseSync) => void;
  /**
   * Adds the first rows, in the transaction that creates the tables. An owner runs this transaction whenever it opens
   * the file.
   */
  readonly addFirstRows?: (database: DatabaseSync) => void;
  /**
   * Makes this process the owner of the folder: the only process that writes. If there is no owner, several processes
   * share the file.
   */
  readonly owner?: SqliteOwner;
  /** Converts an error of the constructor; by default it is thrown as it is. */
  readonly openError?: (error: unknown) => unknown;
  /** If true, each transaction checks that the file and its log were not removed or replaced. */
  readonly checksFiles?: boolean;
}

export interface SqliteOwner {
  /** The column of the table `owner` that stores the owner's random ID. */
  readonly column: string;
  /** Makes the error for a process that tries to open a folder that another owner has locked. */
  readonly busy: () => Error;
  /** Makes the error for an owner that detects that a later owner has taken over. */
  readonly takenOver: () => Error;
}

export class SqliteFile implements Disposable {
  /** The connection, for work that concerns the whole file. */
  readonly database: DatabaseSync;
  readonly folder: string;
  readonly #path: string;
  readonly #logPath: string;
  readonly #owner: SqliteOwner | undefined;
  readonly #ownerLock: DatabaseSync | null;
  /** This owner's ID in the database. The ID is random, because a counter would repeat itself in a copy of the file. */
  readonly #ownerId = crypto.randomUUID();
  readonly #files: OpenFilesCheck | null;
  readonly #statements = new Map<string, StatementSync>();
  #inTransaction = false;
  #loggedBytes = 0;
  /** The value of `#loggedBytes` at the beginning of the open transaction. */
  #loggedBefore = 0;
  /** The number of executed statements, by which tests measure cost. */
  statements = 0;
  commits = 0;

  /**
   * Throws the errors of `busy` and `prepare`, CONFIG for another format or another program's file, and errors of
   * SQLite and of the system.
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
      // Flushes the log: SQLite treats the data that a killed process wrote as stored, even if that process never
      // flushed it.
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

  /** Executes a statement. Returns the number of changed rows. */
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

  /** Writes a row, and overwrites the row with the same key. */
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
    this.requireOwnership(); // inside the transaction, so that no other owner can take over before its end
  }

  /**
   * Makes all changes since `begin` durable. If it throws, the outcome is unknown; but if the disk is full, nothing was
   * stored.
   */
  commit(): void {
    if (!this.#inTransaction) return;
    this.statement("COMMIT").run();
    this.#inTransaction = false;
    this.commits++;
  }

  /** Rolls back the transaction, unless SQLite itself has rolled it back because the disk was full. */
  rollBack(): void {
    this.#inTransaction = false;
    try {
      this.database.exec("ROLLBACK");
    } catch {
      // no transaction is open
    }
  }

  /**
   * Runs `work` in a transaction, which is durable when this method returns. If `work` throws, the transaction stores
   * nothing.
   */
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

  /** Throws if another process has become the owner since this process opened the file. */
  requireOwnership(): void {
    if (this.#owner === undefined) return;
    const { column, takenOver } = this.#owner;
    if (this.statement(`SELECT ${column} AS id FROM owner`).get()?.["id"] !== this.#ownerId) throw takenOver();
  }

  /** Makes the next transaction check the files, even if they were checked recently. */
  invalidateFileCheck(): void {
    this.#files?.invalidate();
  }

  /**
   * An upper limit of the bytes in the log since the last checkpoint. The log may have fewer bytes, because neighboring
   * rows share a page.
   */
  get loggedBytes(): number {
    return this.#loggedBytes;
  }

  /** Adds to the counted bytes of the log; a negative number subtracts. */
  protected countLogged(bytes: number): void {
    this.#loggedBytes += bytes;
  }

  /** Copies the log into the database; TRUNCATE then empties it. */
  checkpoint(mode: "PASSIVE" | "FULL" | "TRUNCATE" = "PASSIVE"): void {
    this.database.exec(`PRAGMA wal_checkpoint(${mode})`);
    this.#loggedBytes = 0;
  }

  /**
   * Extends the log's file to `bytes` with zeros, which SQLite ignores. Later commits are then faster, because a flush
   * that extends a file takes twice as long. Does nothing if less than twice this space is free.
   */
  reserveLog(bytes: number): void {
    if (this.space().freeBytes >= 2 * bytes) reserveFile(this.#logPath, bytes);
  }

  /** The size of the log's file. Part of it may be reserved and unused. */
  get logFileBytes(): number {
    return statSync(this.#logPath, { throwIfNoEntry: false })?.size ?? 0;
  }

  pragma(name: string): number {
    return Number(this.get(`PRAGMA ${name}`)?.[name] ?? 0);
  }

  /** Returns the bytes of the database's used pages. */
  usedBytes(): number {
    return (this.pragma("page_count") - this.pragma("freelist_count")) * sqlitePageBytes;
  }

  /** The size of the file system, and its free space for this user, in bytes; zeros if the folder was removed. */
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

  /** The number of bytes by which the database file will grow when the log is copied into it. */
  get owedBytes(): number {
    const fileBytes = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
    return Math.max(0, this.pragma("page_count") * sqlitePageBytes - fileBytes);
  }

  /** Runs a step of opening the file. If the step throws, closes the file and releases its locks. */
  closeIfFails<Result>(work: () => Result): Result {
    try {
      return work();
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Closes the file. Calls `closed` afterwards, while the process still owns the folder. */
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
  // Makes the file private, because a user who can read it could lock it. Does not open an existing file, because
  // closing it would release SQLite's locks on it (fcntl(2)).
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

/**
 * Repeats opening while another process locks the file, because SQLite itself does not wait while it switches to a
 * write-ahead log.
 */
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
    checkSqliteFormat(database, format); // checked first, so that baton does not change another program's file
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    inspect?.(database);
    const isNew = readSqlitePragma(database, "user_version") === 0;
    // Flushes the folders before the file has content. A process that finds content then need not flush them.
    if (isNew) flushParentFolders(format.folder);
    if (!isNew && owner === undefined) return database;
    const write = () => {
      database.exec("BEGIN IMMEDIATE");
      checkSqliteFormat(database, format); // another process may have created the tables before this transaction
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

/**
 * Runs `write`. If the disk has no space for another transaction in the log, empties the log and runs `write` again.
 */
function retryWithEmptyLog(database: DatabaseSync, write: () => void): void {
  try {
    write();
  } catch (error) {
    if (!isDiskFullError(error)) throw error;
    try {
      database.exec("ROLLBACK");
    } catch {
      // SQLite itself has rolled back.
    }
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    write();
  }
}

/**
 * Copies a snapshot of a database into a new file, which is durable when this function returns. Leaves no file after an
 * error. The copy is named `path`.part until it is complete, so that no user takes an interrupted copy for a complete
 * one. Throws EEXIST if a file `path`.part exists, because another copy is being made or was interrupted. `read` must
 * open the database and pass it to the given function.
 */
export function copySqliteDatabase(read: (copy: (database: DatabaseSync) => void) => void, path: string, options: {
  /** Called with the finished copy; may change the copy before it is flushed. */
  readonly complete?: (part: string) => void;
  /** Throws if the copy is damaged. */
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
      database.prepare("VACUUM INTO ?").run(part); // writes into the empty file, and does not flush it
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

/** Checks that open files were not removed or replaced, because data written to a removed file is lost. */
class OpenFilesCheck {
  readonly #folder: string;
  readonly #checkMs: number;
  readonly #inodes: ReadonlyMap<string, bigint | null>;
  #checkedMs = -Infinity;

  /** Remembers the files, which must be open. `checkMs` is how long a check stays valid, in milliseconds. */
  constructor(folder: string, names: readonly string[], { checkMs }: { readonly checkMs: number }) {
    this.#folder = folder;
    this.#checkMs = checkMs;
    this.#inodes = new Map(names.map((name) => [name, inodeOf(folder, name)]));
  }

  /** Checks the files, unless the last check is recent. Throws if a file was removed or replaced. */
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

/** Returns the file's inode, or null if there is no file. */
function inodeOf(folder: string, name: string): bigint | null {
  return statSync(join(folder, name), { bigint: true, throwIfNoEntry: false })?.ino ?? null;
}

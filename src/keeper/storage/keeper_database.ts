/**
 * The keeper's files: an SQLite database with the rows, and a second database that is only locked, so that a data directory has
 * one owner while other processes can read it (backup, verify). If the second file is removed, another owner can get in: the
 * rows therefore name their last owner, and no other process changes them. Synchronous: it runs in the storage thread.
 */
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { BatonError } from "../../errors.ts";
import { flushParentFolders, reserveFile } from "../../storage/durable_file.ts";
import { createDatabaseFile } from "../../storage/create_database_file.ts";
import { CommittedMark, readMark } from "../../storage/committed_mark.ts";
import { checkSchema } from "../../storage/sqlite_format.ts";
import { damageInLog } from "../../storage/wal_check.ts";
import {
  databaseName,
  decodeRows,
  encodeRows,
  markName,
  ownerName,
  type StoredRow,
  zxidChecksum,
} from "./stored_records.ts";

/** PRAGMA user_version: the format of the tables and rows below. */
export const storedFormat = 2;

/**
 * The size reserved for the write-ahead log: a flush that extends the file takes twice as long. A checkpoint copies the log into
 * the database before it is full; it is then written from its beginning again.
 */
const logBytes = 8 << 20;
/** The size from which an idle keeper makes a checkpoint. */
const idleCheckpointBytes = 1 << 20;
const pageBytes = 4096;
const schema = `
  CREATE TABLE IF NOT EXISTS nodes (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
  CREATE TABLE IF NOT EXISTS sessions (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
  CREATE TABLE IF NOT EXISTS progress (id INTEGER PRIMARY KEY, zxid INTEGER NOT NULL, checksum INTEGER);
  CREATE TABLE IF NOT EXISTS owner (id INTEGER PRIMARY KEY, keeper TEXT NOT NULL);`;

const damageRemedy = "Acknowledged data cannot be read; start from a backup (baton keeper backup), or " +
  "move the folder away while no lock is held";

/** The approximate size of the parts in which rows are sent to the other thread. */
const pieceBytes = 4 << 20;

export class DataDirectoryOwned extends Error {}

export class KeeperDatabase {
  readonly #owner: DatabaseSync;
  readonly #database: DatabaseSync;
  readonly #logPath: string;
  readonly #mark: CommittedMark;
  /** Whether the next commit may be the first one in a restarted log. */
  #logBegins = true;
  /** This owner's name in the rows; random, because a copy would repeat a number. */
  readonly #name = crypto.randomUUID();
  #loggedBytes = 0;
  readonly #statements: Readonly<
    Record<"owner" | "putNode" | "dropNode" | "putSession" | "dropSession" | "putZxid", StatementSync>
  >;

  constructor(dataDir: string) {
    const path = join(dataDir, databaseName);
    this.#logPath = `${path}-wal`;
    this.#mark = new CommittedMark(join(dataDir, markName));
    this.#owner = openLocked(join(dataDir, ownerName));
    try {
      const damage = damageInLog(path) ?? describeOlderThanMark(path);
      // SQLite would silently leave out what it cannot read: locks that are held would be free.
      if (damage !== null) throw new Error(`${damage}. ${damageRemedy}`);
      this.#database = openRows(path, { owner: this.#name, mark: this.#mark });
    } catch (error) {
      this.#owner.close();
      throw error;
    }
    const prepare = (sql: string) => this.#database.prepare(sql);
    this.#statements = {
      owner: prepare("SELECT keeper FROM owner"),
      putNode: prepare("INSERT OR REPLACE INTO nodes (id, body) VALUES (?, ?)"),
      dropNode: prepare("DELETE FROM nodes WHERE id = ?"),
      putSession: prepare("INSERT OR REPLACE INTO sessions (id, body) VALUES (?, ?)"),
      dropSession: prepare("DELETE FROM sessions WHERE id = ?"),
      putZxid: prepare("INSERT OR REPLACE INTO progress (id, zxid, checksum) VALUES (0, ?, ?)"),
    };
  }

  load(): Generator<Uint8Array, void, void> {
    return readPieces(this.#database);
  }

  /** Throws DataDirectoryOwned when another keeper has opened the rows since. */
  confirmOwner(): void {
    if (this.#statements.owner.get()?.["keeper"] !== this.#name) throw new DataDirectoryOwned("another keeper owns it");
  }

  /** Stores changes in one transaction. All are on the disk when this returns; none is when it throws, like `confirmOwner` or otherwise. */
  commit(changes: Uint8Array): void {
    const { zxid, nodes, sessions } = decodeRows(changes);
    const { putNode, dropNode, putSession, dropSession, putZxid } = this.#statements;
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      this.confirmOwner(); // inside the transaction: a later owner then finds what this one stored
      for (const { id, body } of nodes) body === null ? dropNode.run(id) : putNode.run(id, body);
      for (const { id, body } of sessions) body === null ? dropSession.run(id) : putSession.run(id, body);
      putZxid.run(zxid, zxidChecksum(zxid));
      this.#database.exec("COMMIT");
      this.#raiseMark(zxid);
      // This is an upper limit: rows that are close together share a page.
      this.#loggedBytes += changes.byteLength + (nodes.length + sessions.length + 1) * pageBytes;
    } catch (error) {
      rollBack(this.#database);
      throw error;
    }
  }

  /** Copies the log into the database if it is large enough for the occasion. */
  checkpoint(occasion: "idle" | "busy"): void {
    if (this.#loggedBytes < (occasion === "idle" ? idleCheckpointBytes : logBytes)) return;
    this.#logBegins = true;
    this.#database.exec("PRAGMA wal_checkpoint(PASSIVE)");
    this.#loggedBytes = 0;
  }

  /** Extends the log's file to its final size. SQLite ignores the zeros at its end, which are no frame with a valid checksum. */
  reserveLog(): void {
    reserveFile(this.#logPath, logBytes);
  }

  close(): void {
    this.#database.close();
    // SQLite deletes the log when the database contains all of it and no other process reads.
    if (existsSync(this.#logPath)) this.#mark.close();
    else this.#mark.remove();
    this.#owner.close();
  }

  /** Raises the mark before the commit is acknowledged. If the mark cannot be written, the next commit tries again. */
  #raiseMark(zxid: bigint): void {
    try {
      this.#mark.write(zxid, { flush: this.#logBegins });
      this.#logBegins = false;
    } catch {
      this.#logBegins = true;
    }
  }
}

/** The owner's name in a copy. */
export const ownerOfCopies = "a backup";

/**
 * A sentence about rows that are older than the mark beside them; null when they are not. The log was then truncated or removed,
 * or the file was replaced by an older one. A copy made by `backup` may be older. Changes no file.
 */
export function describeOlderThanMark(path: string): string | null {
  const mark = readMark(join(dirname(path), markName)); // read first: a running keeper raises both
  if (mark === 0n || !existsSync(path)) return null;
  using database = new DatabaseSync(path, { readOnly: true });
  if (isCopy(database)) return null;
  const zxid = hasTables(database) ? zxidIn(database) : 0n;
  return zxid >= mark ? null : `transaction ${mark} was stored, but ${zxid} is the last that can be read: the log ` +
    `was truncated or removed, or ${databaseName} is an older file (if that is intended, remove ${markName})`;
}

function isCopy(database: DatabaseSync): boolean {
  return hasTables(database) && database.prepare("SELECT keeper FROM owner").get()?.["keeper"] === ownerOfCopies;
}

function hasTables(database: DatabaseSync): boolean {
  return database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'owner'").get() !== undefined;
}

/** All rows in parts: first the sessions and the zxid (0 in a new directory), then the nodes by age, oldest first. */
export function* readPieces(database: DatabaseSync): Generator<Uint8Array, void, void> {
  yield encodeRows(zxidIn(database), [], [...rowsOf(database, "SELECT id, body FROM sessions")]);
  let nodes: StoredRow[] = [];
  let bytes = 0;
  for (const row of rowsOf(database, "SELECT id, body FROM nodes ORDER BY id")) {
    nodes.push(row);
    bytes += row.body?.byteLength ?? 0;
    if (bytes < pieceBytes) continue;
    yield encodeRows(0n, nodes, []);
    nodes = [];
    bytes = 0;
  }
  yield encodeRows(0n, nodes, []);
}

function zxidIn(database: DatabaseSync): bigint {
  const progress = database.prepare("SELECT zxid, checksum FROM progress");
  progress.setReadBigInts(true);
  const row = progress.get();
  if (row === undefined) return 0n;
  const { zxid, checksum } = row;
  if (typeof zxid === "bigint" && checksum === BigInt(zxidChecksum(zxid))) return zxid;
  throw new TypeError(`The number of the last transaction, ${zxid}, does not match its checksum`);
}

function* rowsOf(database: DatabaseSync, sql: string): Generator<StoredRow, void, void> {
  const statement = database.prepare(sql);
  statement.setReadBigInts(true);
  for (const { id, body } of statement.iterate()) {
    if (typeof id !== "bigint" || !(body instanceof Uint8Array)) throw new TypeError(`A row of "${sql}" is damaged`);
    yield { id, body };
  }
}

function openRows(
  path: string,
  { owner, mark }: { readonly owner: string; readonly mark: CommittedMark },
): DatabaseSync {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) {
    mark.remove(); // it belongs to removed data
    createDatabaseFile(path);
  } // SQLite takes an empty file for a database without tables; a keeper never leaves one
  else if (found.size === 0) throw new BatonError("CONFIG", truncatedMessage(path));
  const database = new DatabaseSync(path);
  try {
    // Backups read the database and hold locks for short times.
    database.exec("PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    database.exec(`PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = ${4 * logBytes}`);
    const format = database.prepare("PRAGMA user_version").get()?.["user_version"];
    if (format !== 0 && format !== storedFormat) {
      throw new Error(`its format is ${format}; this version of baton knows format ${storedFormat}`);
    }
    if (format === storedFormat) checkSchema(database, schema);
    const isRestored = isCopy(database);
    if (isRestored) mark.remove();
    // Flush the folder entries before the database contains anything, so that later owners need not.
    if (format === 0 || isRestored) flushParentFolders(dirname(path));
    database.exec(`BEGIN IMMEDIATE; ${schema}
      INSERT OR REPLACE INTO owner (id, keeper) VALUES (0, '${owner}');
      PRAGMA user_version = ${storedFormat};
      COMMIT`);
    // A copy needs no mark. From now on the mark applies to this file, also without its log.
    if (isRestored) database.exec("PRAGMA wal_checkpoint(FULL)");
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function truncatedMessage(path: string): string {
  return `The keeper's data ${path} is empty: the file was truncated. Replace it with ` +
    "a backup (baton keeper backup), or remove it while no lock is held";
}

/** Locks the file until it is closed or the process ends. */
function openLocked(path: string): DatabaseSync {
  const database = new DatabaseSync(path);
  try {
    database.exec("BEGIN EXCLUSIVE");
    return database;
  } catch (error) {
    database.close();
    if (/locked|busy/i.test(String(error))) throw new DataDirectoryOwned("another keeper owns it");
    throw error;
  }
}

function rollBack(database: DatabaseSync): void {
  try {
    database.exec("ROLLBACK");
  } catch {
    // SQLite has rolled back by itself, as it does when the disk is full
  }
}

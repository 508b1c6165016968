/**
 * The keeper's files: one SQLite database with the rows, and a second one that is only ever locked, so that a data
 * directory has one owner while others can still read it (backup, verify). Whoever removes the second one lets another
 * owner in: the rows name the last to open them, and nobody else changes them. Synchronous: it lives in the store's thread.
 */
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { BatonError } from "../../errors.ts";
import { flushParentFolders } from "../../storage/durable_file.ts";
import { createDatabaseFile } from "../../storage/create_database_file.ts";
import { reserveFile } from "../../storage/durable_file.ts";
import { CommittedMark, readMark } from "../../storage/committed_mark.ts";
import { damageInLog } from "../../storage/wal_check.ts";
import {
  databaseName,
  decodeRows,
  encodeRows,
  markName,
  ownerName,
  type StoredRow,
  withChecksum,
  zxidChecksum,
} from "./stored_records.ts";

/** PRAGMA user_version: the form of the tables and rows below. 1 was without checksums. */
export const storedFormat = 2;

/**
 * The write-ahead log keeps this much of the disk: a flush that has to make the file longer takes twice as long. It is
 * copied into the database, and then written from its beginning again, before it is full …
 */
const logBytes = 8 << 20;
/** … or, when there is nothing else to do, from this much on. */
const idleCheckpointBytes = 1 << 20;
const pageBytes = 4096;

const damageRemedy =
  "What was acknowledged can no longer be read in order; start from a backup (baton keeper backup), or " +
  "move the folder away while nobody holds a lock";

/** Rows travel to the other thread in pieces of about this size. */
const pieceBytes = 4 << 20;

/** Somebody else owns the data directory. */
export class DataDirectoryOwned extends Error {}

export class KeeperDatabase {
  readonly #owner: DatabaseSync;
  readonly #database: DatabaseSync;
  readonly #logPath: string;
  readonly #mark: CommittedMark;
  /** The next commit may be the first in a log that begins again. */
  #logBegins = true;
  /** What the rows call this owner; random, as a number would come again with a copy. */
  readonly #name = crypto.randomUUID();
  #loggedBytes = 0;
  readonly #statements: Readonly<
    Record<"owner" | "putNode" | "dropNode" | "putSession" | "dropSession" | "putZxid", StatementSync>
  >;

  constructor(dataDir: string) {
    const path = join(dataDir, databaseName);
    this.#logPath = `${path}-wal`;
    this.#mark = new CommittedMark(join(dataDir, markName));
    this.#owner = own(join(dataDir, ownerName));
    try {
      const damage = damageInLog(path) ?? olderThanMark(path);
      // SQLite would leave out what it cannot read, and say nothing: locks would be free that are held.
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

  /** Everything stored. */
  load(): Generator<Uint8Array, void, void> {
    return readPieces(this.#database);
  }

  /** Throws DirectoryOwned when another one has opened the rows since. */
  confirm(): void {
    if (this.#statements.owner.get()?.["keeper"] !== this.#name) throw new DataDirectoryOwned("another keeper owns it");
  }

  /** One transaction: when it returns, everything in it is on the disk; when it throws, as `confirm` or else, nothing is. */
  commit(changes: Uint8Array): void {
    const { zxid, nodes, sessions } = decodeRows(changes);
    const { putNode, dropNode, putSession, dropSession, putZxid } = this.#statements;
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      this.confirm(); // in the transaction: whoever opens the rows after it finds what it stored
      for (const { id, body } of nodes) body === null ? dropNode.run(id) : putNode.run(id, body);
      for (const { id, body } of sessions) body === null ? dropSession.run(id) : putSession.run(id, body);
      putZxid.run(zxid, zxidChecksum(zxid));
      this.#database.exec("COMMIT");
      this.#raiseMark(zxid);
      // At most: neighbours share a page.
      this.#loggedBytes += changes.byteLength + (nodes.length + sessions.length + 1) * pageBytes;
    } catch (error) {
      rollBack(this.#database);
      throw error;
    }
  }

  /** Copies the log into the database if it has grown enough for the occasion. */
  checkpoint(occasion: "idle" | "busy"): void {
    if (this.#loggedBytes < (occasion === "idle" ? idleCheckpointBytes : logBytes)) return;
    this.#logBegins = true;
    this.#database.exec("PRAGMA wal_checkpoint(PASSIVE)");
    this.#loggedBytes = 0;
  }

  /**
   * Makes the log's file as long as it will be. SQLite takes the zeros at its end for what they are, no part of the log:
   * it believes only what carries the salt of the log's header and a checksum.
   */
  reserveLog(): void {
    reserveFile(this.#logPath, logBytes);
  }

  close(): void {
    this.#database.close();
    // SQLite removes the log when everything in it is in the database; not while others read.
    if (existsSync(this.#logPath)) this.#mark.close();
    else this.#mark.remove();
    this.#owner.close();
  }

  /** Before the commit is acknowledged. A mark that cannot be written stops nobody: the next commit tries again. */
  #raiseMark(zxid: bigint): void {
    try {
      this.#mark.write(zxid, { flush: this.#logBegins });
      this.#logBegins = false;
    } catch {
      this.#logBegins = true;
    }
  }
}

/** In a copy, instead of a keeper's name. */
export const ownerOfCopies = "a backup";

/**
 * A sentence about rows that are older than the mark beside them, or null: the log was cut off or removed, or an older file was
 * put in the place of this one. A copy that `backup` made is meant to be older. Changes no file.
 */
export function olderThanMark(path: string): string | null {
  const mark = readMark(join(dirname(path), markName)); // first: a keeper that runs meanwhile raises both
  if (mark === 0n || !existsSync(path)) return null;
  using database = new DatabaseSync(path, { readOnly: true });
  if (isCopy(database)) return null;
  const zxid = hasTables(database) ? zxidIn(database) : 0n;
  return zxid >= mark
    ? null
    : `transaction ${mark} had been stored, and ${zxid} is the last that can be read: the log ` +
      `was cut off or removed, or ${databaseName} is an older file (if that is on purpose, remove ${markName})`;
}

function isCopy(database: DatabaseSync): boolean {
  return hasTables(database) && database.prepare("SELECT keeper FROM owner").get()?.["keeper"] === ownerOfCopies;
}

function hasTables(database: DatabaseSync): boolean {
  return database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'owner'").get() !== undefined;
}

/** All rows, in pieces; the first has the sessions and the zxid, which is 0 in a fresh directory. Nodes come oldest first. */
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
  throw new TypeError(`The last transaction's number is stored as ${zxid}, and its checksum does not match`);
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
    mark.remove(); // of another one
    createDatabaseFile(path);
  } // To SQLite an empty file is a database without tables; no keeper leaves one.
  else if (found.size === 0) throw new BatonError("CONFIG", cutOff(path));
  const database = new DatabaseSync(path);
  try {
    // Others may be reading, for a backup, and hold locks for a moment.
    database.exec("PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    database.exec(`PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = ${4 * logBytes}`);
    const format = database.prepare("PRAGMA user_version").get()?.["user_version"];
    if (format !== 0 && format !== 1 && format !== storedFormat) {
      throw new Error(`its format is ${format}, this version of baton knows ${storedFormat}`);
    }
    const isRestored = isCopy(database);
    if (isRestored) mark.remove();
    // Before anything is in it, so that who finds something there need not.
    if (format === 0 || isRestored) flushParentFolders(dirname(path));
    database.exec("BEGIN IMMEDIATE");
    if (format === 1) addChecksums(database);
    database.exec(`
      CREATE TABLE IF NOT EXISTS nodes (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
      CREATE TABLE IF NOT EXISTS sessions (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
      CREATE TABLE IF NOT EXISTS progress (id INTEGER PRIMARY KEY, zxid INTEGER NOT NULL, checksum INTEGER);
      CREATE TABLE IF NOT EXISTS owner (id INTEGER PRIMARY KEY, keeper TEXT NOT NULL);
      INSERT OR REPLACE INTO owner (id, keeper) VALUES (0, '${owner}');
      PRAGMA user_version = ${storedFormat};
      COMMIT`);
    // A mark does not concern a copy; it concerns this file from now on, also without its log.
    if (isRestored) database.exec("PRAGMA wal_checkpoint(FULL)");
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function cutOff(path: string): string {
  return `The keeper's data ${path} is empty: it was cut off, and a keeper would begin with nothing. Put a backup in its ` +
    "place (baton keeper backup makes them), or, while nobody holds a lock, remove the file";
}

/** Locked until it is closed or the process is gone, however that happens. */
function own(path: string): DatabaseSync {
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

export function addChecksums(database: DatabaseSync): void {
  for (const table of ["nodes", "sessions"]) {
    const bodyOf = database.prepare(`SELECT body FROM ${table} WHERE id = ?`);
    const put = database.prepare(`UPDATE ${table} SET body = ? WHERE id = ?`);
    const ids = database.prepare(`SELECT id FROM ${table}`);
    ids.setReadBigInts(true);
    for (const { id } of ids.all()) {
      const body = bodyOf.get(id ?? null)?.["body"];
      if (typeof id !== "bigint" || !(body instanceof Uint8Array)) throw new TypeError(`A row of ${table} is damaged`);
      put.run(withChecksum(id, body), id);
    }
  }
  database.exec("ALTER TABLE progress ADD COLUMN checksum INTEGER");
  const progress = database.prepare("SELECT zxid FROM progress");
  progress.setReadBigInts(true);
  const zxid = progress.get()?.["zxid"];
  if (typeof zxid === "bigint") database.prepare("UPDATE progress SET checksum = ?").run(zxidChecksum(zxid));
}

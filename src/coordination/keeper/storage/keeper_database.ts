/**
 * The keeper's files: an SQLite database with the rows, which names its owner (sqlite_file.ts), and beside it a file
 * with the last zxid (committed_mark.ts). All calls block, because they run in the storage thread.
 */
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { BatonError } from "../../../base/errors.ts";
import { flushParentFolders } from "../../../base/storage/durable_file.ts";
import { createDatabaseFile } from "../../../base/storage/create_database_file.ts";
import { LastCommitNumberFile, readLastCommitNumber } from "../../../base/storage/committed_mark.ts";
import { writableDiskBytes } from "../../../base/storage/disk_space.ts";
import { SqliteFile } from "../../../base/storage/sqlite_file.ts";
import type { SqliteFormat } from "../../../base/storage/sqlite_format.ts";
import { findWalDamage } from "../../../base/storage/wal_check.ts";
import {
  decodeKeeperRows,
  encodeKeeperRows,
  keeperDatabaseFileName,
  type KeeperDatabaseRow,
  zxidChecksum,
  zxidMarkFileName,
} from "./keeper_rows.ts";

/**
 * The bytes reserved for the write-ahead log. Before the log is full, a checkpoint copies it into the database; the log
 * is then written from its beginning again.
 */
const logBytes = 8 << 20;
/**
 * The sizes of the log, in bytes, from which a keeper makes a checkpoint: when it is idle, and when its disk is nearly
 * full.
 */
const idleCheckpointBytes = 1 << 20;
const lowCheckpointBytes = 512 << 10;
/** The bytes that nodes must leave free. Nodes can then be deleted, and sessions can end, even on a full disk. */
const freeBytesKept = 1 << 20;
/** The number of commits after which the free space is measured again. */
const commitsPerMeasurement = 16;
/**
 * How long to wait for another program that has locked the database for a moment, in milliseconds. A backup does so,
 * and so does the last program that closes the database.
 */
export const keeperDatabaseBusyMs = 5_000;
const schema = `
  CREATE TABLE IF NOT EXISTS nodes (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
  CREATE TABLE IF NOT EXISTS sessions (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
  CREATE TABLE IF NOT EXISTS progress (id INTEGER PRIMARY KEY, zxid INTEGER NOT NULL, checksum INTEGER);
  CREATE TABLE IF NOT EXISTS owner (id INTEGER PRIMARY KEY, keeper TEXT NOT NULL);`;

const statements = {
  nodes: {
    put: "INSERT OR REPLACE INTO nodes (id, body) VALUES (?, ?)",
    drop: "DELETE FROM nodes WHERE id = ?",
  },
  sessions: {
    put: "INSERT OR REPLACE INTO sessions (id, body) VALUES (?, ?)",
    drop: "DELETE FROM sessions WHERE id = ?",
  },
  progress: "INSERT OR REPLACE INTO progress (id, zxid, checksum) VALUES (0, ?, ?)",
} as const;

const damageRemedy = "Acknowledged data cannot be read; start from a backup (baton keeper backup), or " +
  "move the folder away while no lock is held";

/** The approximate size of the parts in which rows are sent to the other thread, in bytes. */
const pieceBytes = 4 << 20;

/** Returns the format of the database at `path`: the tables above; keeper_rows.ts defines their rows. */
export function keeperDatabaseFormat(path: string): SqliteFormat {
  return { what: "keeper's data", folder: dirname(path), path, applicationId: 0, format: 2, schema };
}

export class KeeperDatabase {
  readonly #file: SqliteFile;
  readonly #logPath: string;
  readonly #mark: LastCommitNumberFile;
  /** True if the next commit may be the first in a restarted log. */
  #logBegins = true;
  /** True if the disk has no room for a log of its full size. */
  #isLow = true;
  #measuredAtCommit = 0;

  /** Throws LOCK_BUSY if another keeper owns the data, or CONFIG for a truncated file or another format. */
  constructor(dataDir: string) {
    const path = join(dataDir, keeperDatabaseFileName);
    this.#logPath = `${path}-wal`;
    const mark = this.#mark = new LastCommitNumberFile(join(dataDir, zxidMarkFileName));
    const owned = () => new BatonError("LOCK_BUSY", `Another keeper owns the data directory ${dataDir}`);
    let isRestored = false;
    this.#file = new SqliteFile({
      format: keeperDatabaseFormat(path),
      busyMs: keeperDatabaseBusyMs,
      pragmas: `PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = ${4 * logBytes}`,
      owner: { column: "keeper", busy: owned, takenOver: owned },
      prepare: () => prepareFile(path, mark),
      inspect: (database) => {
        isRestored = isCopy(database);
        if (!isRestored) return;
        mark.remove();
        flushParentFolders(dataDir);
      },
    });
    // A restored copy needs no mark. From now on the mark applies to this file, even if the log is missing.
    if (isRestored) this.#file.closeIfFails(() => this.#file.checkpoint("FULL"));
  }

  load(): Generator<Uint8Array, void, void> {
    return readEncodedKeeperRows(this.#file.database);
  }

  /** Throws LOCK_BUSY if another keeper has opened the database since this keeper opened it. */
  confirmOwner(): void {
    this.#file.requireOwnership();
  }

  /**
   * Stores changes in one transaction. When this method returns, all changes are on the disk; when it throws, none are.
   * Throws LOCK_BUSY like `confirmOwner`.
   */
  commit(changes: Uint8Array): void {
    const { zxid, nodes, sessions } = decodeKeeperRows(changes);
    this.#file.transaction(() => {
      this.#store(nodes, statements.nodes);
      this.#store(sessions, statements.sessions);
      this.#file.run(statements.progress, zxid, zxidChecksum(zxid));
    });
    this.#raiseMark(zxid);
  }

  #store(rows: readonly KeeperDatabaseRow[], { put, drop }: { readonly put: string; readonly drop: string }): void {
    for (const { id, body } of rows) body === null ? this.#file.run(drop, id) : this.#file.run(put, id, body);
  }

  /** Returns the number of bytes that nodes may still take on the disk; null if the space was not measured again. */
  room(): number | null {
    if (!this.#isLow && this.#file.commits - this.#measuredAtCommit < commitsPerMeasurement) return null;
    this.#measuredAtCommit = this.#file.commits;
    // Checkpoints keep at least this part of a full-size log empty.
    const emptyLogBytes = this.#file.logFileBytes >= logBytes ? logBytes / 2 : 0;
    const room = writableDiskBytes(this.#file.space(), freeBytesKept, emptyLogBytes);
    this.#isLow = room < logBytes;
    return room;
  }

  /** Copies the log into the database if the log is large enough for the occasion. */
  checkpoint(occasion: "idle" | "busy"): void {
    const busyBytes = this.#isLow ? lowCheckpointBytes : logBytes;
    if (this.#file.loggedBytes < (occasion === "idle" ? idleCheckpointBytes : busyBytes)) return;
    this.#logBegins = true;
    this.#file.checkpoint(this.#isLow && this.#file.logFileBytes > 2 * logBytes ? "TRUNCATE" : "PASSIVE");
  }

  reserveLog(): void {
    this.#file.reserveLog(logBytes);
  }

  close(): void {
    this.#file.close(() => {
      // SQLite deletes the log when the database contains all of it and no other process reads.
      if (existsSync(this.#logPath)) this.#mark.close();
      else this.#mark.remove();
    });
  }

  /** Raises the mark before the commit is acknowledged. If that fails, the next commit tries again. */
  #raiseMark(zxid: bigint): void {
    try {
      this.#mark.write(zxid, { flush: this.#logBegins });
      this.#logBegins = false;
    } catch {
      this.#logBegins = true;
    }
  }
}

/**
 * Creates the file if there is none. Throws if SQLite would silently omit unreadable data, because locks that are held
 * would then be free.
 */
function prepareFile(path: string, mark: LastCommitNumberFile): void {
  const damage = findWalDamage(path) ?? describeOutdatedKeeperData(path);
  if (damage !== null) throw new Error(`${damage}. ${damageRemedy}`);
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) {
    mark.remove(); // the mark belongs to removed data
    createDatabaseFile(path);
  } // SQLite takes an empty file for a database without tables; a keeper never leaves one
  else if (found.size === 0) throw new BatonError("CONFIG", truncatedMessage(path));
}

export const keeperBackupOwnerName = "a backup";

/**
 * Returns a sentence if the rows are older than the mark beside them, otherwise null. Older rows mean that the log was
 * truncated or removed, or that an older file replaced this one. A backup may be older. Changes no file.
 */
export function describeOutdatedKeeperData(path: string): string | null {
  // Reads the mark before the database, because a running keeper raises both.
  const mark = readLastCommitNumber(join(dirname(path), zxidMarkFileName));
  if (mark === 0n || !existsSync(path)) return null;
  using database = new DatabaseSync(path, { readOnly: true });
  database.exec(`PRAGMA busy_timeout = ${keeperDatabaseBusyMs}`);
  if (isCopy(database)) return null;
  const zxid = hasTables(database) ? zxidIn(database) : 0n;
  return zxid >= mark ? null : `transaction ${mark} was stored, but ${zxid} is the last that can be read: the log ` +
    `was truncated or removed, or ${keeperDatabaseFileName} is an older file ` +
    `(if that is intended, remove ${zxidMarkFileName})`;
}

function isCopy(database: DatabaseSync): boolean {
  return hasTables(database) &&
    database.prepare("SELECT keeper FROM owner").get()?.["keeper"] === keeperBackupOwnerName;
}

function hasTables(database: DatabaseSync): boolean {
  return database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'owner'").get() !== undefined;
}

/**
 * Yields all rows in parts: first the sessions together with the zxid, which is 0 in a new directory, then the nodes,
 * oldest first.
 */
export function* readEncodedKeeperRows(database: DatabaseSync): Generator<Uint8Array, void, void> {
  yield encodeKeeperRows(zxidIn(database), [], [...rowsOf(database, "SELECT id, body FROM sessions")]);
  let nodes: KeeperDatabaseRow[] = [];
  let bytes = 0;
  for (const row of rowsOf(database, "SELECT id, body FROM nodes ORDER BY id")) {
    nodes.push(row);
    bytes += row.body?.byteLength ?? 0;
    if (bytes < pieceBytes) continue;
    yield encodeKeeperRows(0n, nodes, []);
    nodes = [];
    bytes = 0;
  }
  yield encodeKeeperRows(0n, nodes, []);
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

function* rowsOf(database: DatabaseSync, sql: string): Generator<KeeperDatabaseRow, void, void> {
  const statement = database.prepare(sql);
  statement.setReadBigInts(true);
  for (const { id, body } of statement.iterate()) {
    if (typeof id !== "bigint" || !(body instanceof Uint8Array)) throw new TypeError(`A row of "${sql}" is damaged`);
    yield { id, body };
  }
}

function truncatedMessage(path: string): string {
  return `The keeper's data ${path} is empty: the file was truncated. Replace it with ` +
    "a backup (baton keeper backup), or remove it while no lock is held";
}

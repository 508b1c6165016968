/** Verifies a keeper's data directory, or backs it up, even while a keeper uses it. */
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { BatonError, systemCallErrorReason } from "../../../base/errors.ts";
import { noProgress, type WorkProgress } from "../../../base/support/work_progress.ts";
import { copySqliteDatabase } from "../../../base/storage/sqlite_file.ts";
import { checkSqliteFormat } from "../../../base/storage/sqlite_format.ts";
import { isDiskFullError } from "../../../base/storage/storage_error.ts";
import {
  describeOutdatedKeeperData,
  keeperBackupOwnerName,
  keeperDatabaseBusyMs,
  keeperDatabaseFormat,
  readEncodedKeeperRows,
} from "./keeper_database.ts";
import { findWalDamage } from "../../../base/storage/wal_check.ts";
import { decodeKeeperNode, decodeKeeperRows, decodeKeeperSession, keeperDatabaseFileName } from "./keeper_rows.ts";

export interface KeeperDataReport {
  readonly zxid: bigint;
  readonly nodes: number;
  readonly sessions: number;
  readonly bytes: number;
}

/**
 * Reads all data. Checks each row's checksum, the structure of the database, and that the log contains everything that
 * was stored. Throws IO for damage. If the log's index is missing, an incomplete frame at the log's end counts as a
 * write that a crash interrupted.
 */
export function verifyKeeperData(dataDir: string, progress: WorkProgress = noProgress): KeeperDataReport {
  return withData(dataDir, "verify", (database) => ({
    ...checkRows(database, progress),
    bytes: statSync(join(dataDir, keeperDatabaseFileName)).size,
  }));
}

/** Checks a snapshot, so that the keeper that owns the data can continue to write. */
function checkRows(database: DatabaseSync, progress: WorkProgress): Omit<KeeperDataReport, "bytes"> {
  database.exec("BEGIN");
  try {
    return checkRowsNow(database, progress);
  } finally {
    database.exec("ROLLBACK");
  }
}

function checkRowsNow(database: DatabaseSync, progress: WorkProgress): Omit<KeeperDataReport, "bytes"> {
  progress.startPart({ noun: null, verb: "checking the structure of the database", total: null });
  const found = database.prepare("PRAGMA integrity_check").all().map((row) => String(row["integrity_check"]));
  if (found[0] !== "ok") throw new Error(found.join("; "));
  const paths = new Set<string>();
  const sessions = new Set<bigint>();
  let zxid = 0n;
  const total = Number(database.prepare("SELECT count(*) AS n FROM nodes").get()?.["n"]);
  progress.startPart({ noun: "node", verb: "checked", total });
  for (const piece of readEncodedKeeperRows(database)) {
    const rows = decodeKeeperRows(piece);
    if (rows.zxid !== 0n) zxid = rows.zxid;
    for (const row of rows.sessions) sessions.add(decodeKeeperSession(row).id);
    for (const row of rows.nodes) checkNode(decodeKeeperNode(row), { paths, sessions, zxid });
    progress.add(rows.nodes.length);
  }
  return { zxid, nodes: paths.size, sessions: sessions.size };
}

/**
 * Writes a snapshot into a new file from which a keeper can start, and reads the file back. When this function returns,
 * the copy is on the disk; when it throws, there is no copy. Throws CANNOT_CREATE if the file exists or cannot be
 * created, otherwise IO.
 */
export function backUpKeeperData(dataDir: string, file: string, progress: WorkProgress = noProgress): void {
  if (existsSync(file)) throw cannotWrite(file, "it already exists");
  const read = (copy: (database: DatabaseSync) => void) =>
    withData(dataDir, "back up", (database) => {
      try {
        copy(database);
      } catch (error) {
        throw isDiskFullError(error) ? backupError(file, error) : error;
      }
    });
  try {
    copySqliteDatabase(read, file, { complete: markAsCopy, check: (copy) => void checkRows(copy, progress), progress });
  } catch (error) {
    throw backupError(file, error);
  }
}

/** Marks the file as a copy. A copy may replace newer data; see describeOutdatedKeeperData. */
function markAsCopy(file: string): void {
  using copied = new DatabaseSync(file);
  copied.exec("PRAGMA journal_mode = MEMORY"); // no other process uses the file before it is complete
  copied.prepare("UPDATE owner SET keeper = ?").run(keeperBackupOwnerName);
}

function backupError(file: string, error: unknown): BatonError {
  if (error instanceof BatonError) return error;
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code === "EEXIST") {
    return cannotWrite(file, `${file}.part exists: another backup is running or was interrupted`, error);
  }
  if (syscall === "open") return cannotWrite(file, systemCallErrorReason(error), error);
  if (isDiskFullError(error)) {
    return new BatonError("IO", `Cannot write the backup ${file}: its disk is full`, { cause: error });
  }
  return new BatonError("IO", `The backup ${file} is not usable: ${systemCallErrorReason(error)}`, { cause: error });
}

function cannotWrite(file: string, why: string, cause?: unknown): BatonError {
  return new BatonError("CANNOT_CREATE", `Cannot write the backup ${file}: ${why}`, { cause });
}

type StoredNode = ReturnType<typeof decodeKeeperNode>;

function checkNode(
  node: StoredNode,
  known: { readonly paths: Set<string>; readonly sessions: ReadonlySet<bigint>; readonly zxid: bigint },
): void {
  const parent = node.path.slice(0, node.path.lastIndexOf("/")) || "/";
  if (known.paths.has(node.path)) throw new Error(`the node ${node.path} exists twice`);
  if (node.path !== "/" && !known.paths.has(parent)) throw new Error(`the node ${node.path} has no parent`);
  if (node.kind === "ephemeral" && !known.sessions.has(node.ephemeralOwner)) {
    throw new Error(`the ephemeral node ${node.path} belongs to session ${node.ephemeralOwner}, which does not exist`);
  }
  for (const zxid of [node.czxid, node.mzxid, node.pzxid]) {
    if (zxid > known.zxid) {
      throw new Error(`the node ${node.path} has zxid ${zxid}; the last zxid is ${known.zxid}`);
    }
  }
  known.paths.add(node.path);
}

function withData<T>(dataDir: string, what: string, act: (database: DatabaseSync) => T): T {
  const path = join(dataDir, keeperDatabaseFileName);
  if (!existsSync(path)) {
    throw new BatonError("IO", `Cannot ${what} ${dataDir}: it does not contain ${keeperDatabaseFileName}`);
  }
  // SQLite would take an empty file for a database without tables, and would delete the log beside it.
  if (statSync(path).size === 0) throw new BatonError("IO", `Cannot ${what} ${path}: the file was truncated`);
  try {
    const damage = findWalDamage(path) ?? describeOutdatedKeeperData(path);
    if (damage !== null) throw new Error(damage);
    using database = new DatabaseSync(path);
    database.exec(`PRAGMA busy_timeout = ${keeperDatabaseBusyMs}`);
    checkSqliteFormat(database, keeperDatabaseFormat(path));
    return act(database);
  } catch (error) {
    if (error instanceof BatonError) throw error;
    throw new BatonError("IO", `Cannot ${what} ${path}: ${systemCallErrorReason(error)}`, { cause: error });
  }
}

/** Verification and backup of a data directory, also while a keeper uses it. */
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { BatonError, messageOf } from "../../errors.ts";
import { noProgress, type WorkProgress } from "../../support/work_progress.ts";
import { flushPath } from "../../storage/durable_file.ts";
import { describeOlderThanMark, ownerOfCopies, readPieces, storedFormat } from "./keeper_database.ts";
import { usedBytes } from "../../storage/sqlite_format.ts";
import { damageInLog } from "../../storage/wal_check.ts";
import { databaseName, decodeRows, nodeOf, sessionOf } from "./stored_records.ts";

export interface DataReport {
  readonly zxid: bigint;
  readonly nodes: number;
  readonly sessions: number;
  readonly bytes: number;
}

/**
 * Reads all data and checks what SQLite and the keeper rely on: each row's checksum, and that the log contains everything that
 * was stored. Throws IO for damage. Without the log's index, an incomplete frame at its end counts as a write that a crash
 * interrupted.
 */
export function verifyData(dataDir: string, progress: WorkProgress = noProgress): DataReport {
  return withData(dataDir, "verify", (database) => ({
    ...checkRows(database, progress),
    bytes: statSync(join(dataDir, databaseName)).size,
  }));
}

/** Checks one snapshot: the owner of the data continues meanwhile. */
function checkRows(database: DatabaseSync, progress: WorkProgress): Omit<DataReport, "bytes"> {
  database.exec("BEGIN");
  try {
    return checkRowsNow(database, progress);
  } finally {
    database.exec("ROLLBACK");
  }
}

function checkRowsNow(database: DatabaseSync, progress: WorkProgress): Omit<DataReport, "bytes"> {
  progress.startPart({ noun: null, verb: "checking the structure of the database", total: null, file: null });
  const found = database.prepare("PRAGMA integrity_check").all().map((row) => String(row["integrity_check"]));
  if (found[0] !== "ok") throw new Error(found.join("; "));
  const format = database.prepare("PRAGMA user_version").get()?.["user_version"];
  if (format !== storedFormat) {
    throw new Error(
      `its format is ${format}; this version of baton verifies format ${storedFormat}`,
    );
  }
  const paths = new Set<string>();
  const sessions = new Set<bigint>();
  let zxid = 0n;
  const total = Number(database.prepare("SELECT count(*) AS n FROM nodes").get()?.["n"]);
  progress.startPart({ noun: "node", verb: "checked", total, file: null });
  for (const piece of readPieces(database)) {
    const rows = decodeRows(piece);
    if (rows.zxid !== 0n) zxid = rows.zxid;
    for (const row of rows.sessions) sessions.add(sessionOf(row).id);
    for (const row of rows.nodes) checkNode(nodeOf(row), { paths, sessions, zxid });
    progress.add(rows.nodes.length);
  }
  return { zxid, nodes: paths.size, sessions: sessions.size };
}

/**
 * Writes a snapshot into a new file from which a keeper can start, and reads it back. The copy is on the disk when this returns;
 * when it throws, there is no copy. Throws CANNOT_CREATE when the file exists or cannot be created, IO otherwise.
 */
export function backUpData(dataDir: string, file: string, progress: WorkProgress = noProgress): void {
  if (existsSync(file)) throw cannotWrite(file, "it already exists");
  // The copy has another name until it is complete: a killed backup leaves nothing that could be taken for a copy.
  const part = `${file}.part`;
  const copy = createPart(part, file);
  let made = part;
  try {
    withData(dataDir, "back up", (database) => {
      progress.startPart({ noun: "byte", verb: "copied", total: usedBytes(database), file: part });
      vacuumInto(database, part, file);
      markAsCopy(part);
      fsyncSync(copy);
    });
    checkCopy(part, progress);
    renameSync(part, file);
    made = file;
    flushPath(dirname(file));
  } catch (error) {
    for (const name of [made, `${made}-journal`]) rmSync(name, { force: true });
    if (error instanceof BatonError) throw error;
    throw new BatonError("IO", `The backup ${file} is not usable: ${messageOf(error)}`, { cause: error });
  } finally {
    closeSync(copy);
  }
}

/** Marks the file as a copy, so that it may replace newer data: see describeOlderThanMark. */
function markAsCopy(file: string): void {
  using copied = new DatabaseSync(file);
  copied.exec("PRAGMA journal_mode = MEMORY"); // no other process uses the file before it is complete
  copied.prepare("UPDATE owner SET keeper = ?").run(ownerOfCopies);
}

function checkCopy(file: string, progress: WorkProgress): void {
  using copied = new DatabaseSync(file, { readOnly: true });
  checkRows(copied, progress);
}

/** Copies the database. SQLite accepts an empty target file, and does not flush it. */
function vacuumInto(database: DatabaseSync, part: string, file: string): void {
  try {
    database.prepare("VACUUM INTO ?").run(part);
  } catch (error) {
    if (!/disk is full/.test(messageOf(error))) throw error;
    throw new BatonError("IO", `Cannot write the backup ${file}: its disk is full`, { cause: error });
  }
}

/** Creates the file for its owner only: it will contain passwords of sessions. */
function createPart(part: string, file: string): number {
  try {
    return openSync(part, "wx", 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw cannotWrite(file, messageOf(error), error);
    throw cannotWrite(file, `${part} exists: another backup is running or was interrupted`, error);
  }
}

function cannotWrite(file: string, why: string, cause?: unknown): BatonError {
  return new BatonError("CANNOT_CREATE", `Cannot write the backup ${file}: ${why}`, { cause });
}

type StoredNode = ReturnType<typeof nodeOf>;

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
  const path = join(dataDir, databaseName);
  if (!existsSync(path)) throw new BatonError("IO", `Cannot ${what} ${dataDir}: it does not contain ${databaseName}`);
  // SQLite takes an empty file for a database without tables, and deletes the log beside it.
  if (statSync(path).size === 0) throw new BatonError("IO", `Cannot ${what} ${path}: the file was truncated`);
  try {
    const damage = damageInLog(path) ?? describeOlderThanMark(path);
    if (damage !== null) throw new Error(damage);
    using database = new DatabaseSync(path);
    database.exec("PRAGMA busy_timeout = 5000");
    return act(database);
  } catch (error) {
    if (error instanceof BatonError) throw error;
    throw new BatonError("IO", `Cannot ${what} ${path}: ${messageOf(error)}`, { cause: error });
  }
}

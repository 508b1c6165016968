/** For operators: is a data directory whole, and a copy of it. Both also while a keeper runs on it. */
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { BatonError, messageOf } from "../../errors.ts";
import { flushPath } from "../../storage/durable_file.ts";
import { olderThanMark, ownerOfCopies, readPieces, storedFormat } from "./keeper_database.ts";
import { damageInLog } from "../../storage/wal_check.ts";
import { databaseName, decodeRows, nodeOf, sessionOf } from "./stored_records.ts";

export interface DataReport {
  readonly zxid: bigint;
  readonly nodes: number;
  readonly sessions: number;
  readonly bytes: number;
}

/**
 * Reads everything there is, and checks what SQLite and the keeper itself rely on: each row's checksum, and that the log has
 * all that was stored. Throws IO when something is damaged. What a log has last, without its index, is taken for a write
 * that a crash has cut short.
 */
export function verifyData(dataDir: string): DataReport {
  return withData(dataDir, "verify", (database) => ({
    ...checkRows(database),
    bytes: statSync(join(dataDir, databaseName)).size,
  }));
}

/** All of it as of one moment: whoever owns the data goes on meanwhile. */
function checkRows(database: DatabaseSync): Omit<DataReport, "bytes"> {
  database.exec("BEGIN");
  try {
    return checkRowsNow(database);
  } finally {
    database.exec("ROLLBACK");
  }
}

function checkRowsNow(database: DatabaseSync): Omit<DataReport, "bytes"> {
  const found = database.prepare("PRAGMA integrity_check").all().map((row) => String(row["integrity_check"]));
  if (found[0] !== "ok") throw new Error(found.join("; "));
  const format = database.prepare("PRAGMA user_version").get()?.["user_version"];
  if (format !== storedFormat) {
    throw new Error(
      `its format is ${format}, and this version of baton verifies ${storedFormat}, to which a keeper brings it`,
    );
  }
  const paths = new Set<string>();
  const sessions = new Set<bigint>();
  let zxid = 0n;
  for (const piece of readPieces(database)) {
    const rows = decodeRows(piece);
    if (rows.zxid !== 0n) zxid = rows.zxid;
    for (const row of rows.sessions) sessions.add(sessionOf(row).id);
    for (const row of rows.nodes) checkNode(nodeOf(row), { paths, sessions, zxid });
  }
  return { zxid, nodes: paths.size, sessions: sessions.size };
}

/**
 * Writes a copy as of one moment into a new file, and reads it back: a keeper can start from it. When it returns, the copy is on
 * the disk; when it throws, there is none. Throws CANNOT_CREATE when the file exists or cannot be made, else IO.
 */
export function backUpData(dataDir: string, file: string): void {
  if (existsSync(file)) throw cannotWrite(file, "it exists already");
  // Under another name until it is whole: who is killed meanwhile leaves nothing that could be taken for a copy.
  const part = `${file}.part`;
  const copy = createPart(part, file);
  let made = part;
  try {
    withData(dataDir, "back up", (database) => {
      vacuumInto(database, part, file);
      markAsCopy(part);
      fsyncSync(copy);
    });
    checkCopy(part);
    renameSync(part, file);
    made = file;
    flushPath(dirname(file));
  } catch (error) {
    for (const name of [made, `${made}-journal`]) rmSync(name, { force: true });
    if (error instanceof BatonError) throw error;
    throw new BatonError("IO", `The backup ${file} is of no use: ${messageOf(error)}`, { cause: error });
  } finally {
    closeSync(copy);
  }
}

/** So that it may be put in the place of newer data: see olderThanMark. */
function markAsCopy(file: string): void {
  using copied = new DatabaseSync(file);
  copied.exec("PRAGMA journal_mode = MEMORY"); // nobody has it before it is whole
  copied.prepare("UPDATE owner SET keeper = ?").run(ownerOfCopies);
}

function checkCopy(file: string): void {
  using copied = new DatabaseSync(file, { readOnly: true });
  checkRows(copied);
}

/** SQLite takes an empty file, and leaves it to others to flush it. */
function vacuumInto(database: DatabaseSync, part: string, file: string): void {
  try {
    database.prepare("VACUUM INTO ?").run(part);
  } catch (error) {
    if (!/disk is full/.test(messageOf(error))) throw error;
    throw new BatonError("IO", `Cannot write the backup ${file}: its disk is full`, { cause: error });
  }
}

/** For its owner alone from the beginning: passwords of sessions will be in it. */
function createPart(part: string, file: string): number {
  try {
    return openSync(part, "wx", 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw cannotWrite(file, messageOf(error), error);
    throw cannotWrite(file, `${part}, of a backup that was interrupted or is being made, exists already`, error);
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
  if (known.paths.has(node.path)) throw new Error(`the node ${node.path} is there twice`);
  if (node.path !== "/" && !known.paths.has(parent)) throw new Error(`the node ${node.path} has no parent`);
  if (node.kind === "ephemeral" && !known.sessions.has(node.ephemeralOwner)) {
    throw new Error(`the ephemeral node ${node.path} belongs to session ${node.ephemeralOwner}, which is not there`);
  }
  for (const zxid of [node.czxid, node.mzxid, node.pzxid]) {
    if (zxid > known.zxid) {
      throw new Error(`the node ${node.path} was changed by transaction ${zxid}, the last is ${known.zxid}`);
    }
  }
  known.paths.add(node.path);
}

function withData<T>(dataDir: string, what: string, act: (database: DatabaseSync) => T): T {
  const path = join(dataDir, databaseName);
  if (!existsSync(path)) throw new BatonError("IO", `Cannot ${what} ${dataDir}: there is no ${databaseName} in it`);
  // To SQLite an empty file is a database without tables, beside which it removes the log.
  if (statSync(path).size === 0) {
    throw new BatonError("IO", `Cannot ${what} ${path}: it is empty, somebody cut it off`);
  }
  try {
    const damage = damageInLog(path) ?? olderThanMark(path);
    if (damage !== null) throw new Error(damage);
    const database = new DatabaseSync(path);
    try {
      database.exec("PRAGMA busy_timeout = 5000");
      return act(database);
    } finally {
      database.close();
    }
  } catch (error) {
    if (error instanceof BatonError) throw error;
    throw new BatonError("IO", `Cannot ${what} ${path}: ${messageOf(error)}`, { cause: error });
  }
}

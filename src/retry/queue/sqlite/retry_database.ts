/**
 * The database file of a message store, which several processes of a machine use at the same time. Every change is one
 * transaction that starts with BEGIN IMMEDIATE, so that no other process writes between its reads and writes. Services
 * use it in a thread; short commands use it directly.
 */
import { accessSync, constants, mkdirSync, readFileSync, realpathSync, statfsSync, statSync } from "node:fs";
import process from "node:process";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { findUserName, ownUserName } from "../../../base/support/user_name.ts";
import { BatonError, errorMessage, systemCallErrorReason } from "../../../base/errors.ts";
import { refuseLinksOfOthers } from "../../../base/support/open_output.ts";
import { freeDiskBytesAfterWrite } from "../../../base/storage/disk_space.ts";
import { createDatabaseFile } from "../../../base/storage/create_database_file.ts";
import { SqliteFile, sqlitePageBytes } from "../../../base/storage/sqlite_file.ts";
import { isDatabaseLocked, isDiskFullError, storageError } from "../../../base/storage/storage_error.ts";
import { describeDamagedRow, StoreDamageLog } from "../../../base/storage/damage.ts";
import { findWalDamage } from "../../../base/storage/wal_check.ts";
import { readWithNearestNumbers, type SqlRow, type SqlValue } from "../../../base/storage/sql_row.ts";
import type { ChecksumTable } from "../../../base/storage/checksum_table.ts";
import { retryApplicationId, retryStoredFormat, sqliteRetrySchema, sqliteRetryTables } from "./retry_tables.ts";
import {
  databaseBusyTimeoutMs,
  freeBytesKept,
  freeBytesLeast,
  freeShareKept,
  makeRoomMs,
  reservedLogBytes,
  vacuumPages,
} from "../retry_store_limits.ts";

export const retryDatabaseFileName = "messages.sqlite";

export type { SqlRow };

/** Opens the database of a store; tests replace it. */
export type OpenRetryDatabase = (folder: string, options: { readonly mustExist: boolean }) => RetryDatabase;

export class RetryDatabase extends SqliteFile {
  /** Finds and reports rows that differ from what was stored. */
  readonly damage = new StoreDamageLog();
  #dataVersion = -1;
  #wantsRoom = false;

  /**
   * Opens or creates the store. Throws CONFIG for a missing store that must exist, another format, the database of
   * another program, or a network file system. Throws IO for other errors, such as a damaged log.
   */
  constructor(folder: string, { mustExist = false }: { readonly mustExist?: boolean } = {}) {
    const path = join(folder, retryDatabaseFileName);
    super({
      format: {
        what: "message store",
        folder,
        path,
        applicationId: retryApplicationId,
        format: retryStoredFormat,
        schema: sqliteRetrySchema,
      },
      busyMs: databaseBusyTimeoutMs,
      pragmas: `PRAGMA cache_size = -16384; PRAGMA journal_size_limit = ${reservedLogBytes}`,
      prepare: () => prepareStore(folder, { path, mustExist }),
      addFirstRows: addStoreName,
      openError: (error) => accessError(error, folder, path) ?? toRetryStoreError(error, folder),
      checksFiles: true,
    });
  }

  override get(sql: string, ...values: SqlValue[]): SqlRow | undefined {
    return readWithNearestNumbers(this.statement(sql), (statement) => statement.get(...values));
  }

  override all(sql: string, ...values: SqlValue[]): SqlRow[] {
    return readWithNearestNumbers(this.statement(sql), (statement) => statement.all(...values)) ?? [];
  }

  iterate(sql: string, ...values: SqlValue[]): IterableIterator<SqlRow> {
    return this.database.prepare(sql).iterate(...values) as IterableIterator<SqlRow>;
  }

  /** Returns the number of the next row of a table with AUTOINCREMENT. */
  nextNumber(table: string): number {
    return Number(this.get("SELECT seq FROM sqlite_sequence WHERE name = ?", table)?.["seq"] ?? 0) + 1;
  }

  /**
   * Changes the row with this key. Returns false if there is none. If the row is damaged, throws DamageError and
   * changes nothing.
   */
  changeRow<Column extends string>(
    table: ChecksumTable<Column>,
    key: Partial<Record<Column, number | string>>,
    changes: { readonly [Name in Column]?: SqlValue },
  ): boolean {
    const [[column = "", value = ""] = []] = Object.entries<number | string | undefined>(key);
    const changed = Object.entries<SqlValue | undefined>(changes).filter(([, value]) => value !== undefined);
    const row = this.get(`SELECT ${table.allColumns} FROM ${table.name} WHERE ${column} = ?`, value);
    if (row === undefined) return false;
    this.damage.requireIntactRow(table, row, whereOf(table.name, value));
    const sum = table.checksumOfRow({ ...row, ...changes } as Record<Column, SqlValue>);
    const sets = [...changed.map(([name]) => name), "sum"].map((name) => `${name} = ?`).join(", ");
    const values = changed.map(([, value]) => value ?? null);
    this.run(`UPDATE ${table.name} SET ${sets} WHERE ${column} = ?`, ...values, sum, value);
    return true;
  }

  /**
   * Returns up to `max` undamaged rows; reports and skips damaged rows. `read` must return the first `limit` rows,
   * always in the same order.
   */
  intactRows(table: ChecksumTable<string>, max: number, read: (limit: number) => SqlRow[]): SqlRow[] {
    for (let limit = max;;) {
      const rows = read(limit);
      const whole = rows.filter((row) => this.intactOrNull(table, row) !== null);
      if (whole.length === rows.length || whole.length >= max || rows.length < limit) return whole.slice(0, max);
      limit += rows.length - whole.length;
    }
  }

  /** Returns the row. If it is damaged, reports the damage and returns null. */
  intactOrNull<Row extends SqlRow>(table: ChecksumTable<string>, row: Row): Row | null {
    if (table.isIntact(row)) return row;
    this.damage.reportDamage(describeDamagedRow(table.name, row["seq"] ?? row["id"], "of this store"));
    return null;
  }

  /**
   * Runs `work` in a transaction, which is durable when this call returns. If it throws, nothing is stored; but after
   * IO the result is unknown. STORE_FULL means that the disk is full.
   */
  override transaction<Result>(work: () => Result): Result {
    try {
      return super.transaction(work);
    } catch (error) {
      throw toRetryStoreError(error, this.folder);
    }
  }

  /** Runs `work` on one consistent state of the store. Changes nothing and does not wait for writers. */
  readSnapshot<T>(work: () => T): T {
    try {
      this.statement("BEGIN").run();
      try {
        return work();
      } finally {
        this.statement("COMMIT").run();
      }
    } catch (error) {
      throw toRetryStoreError(error, this.folder);
    }
  }

  /** Returns true if another process has written since the last call. */
  hasChanged(): boolean {
    const version = this.pragma("data_version");
    const has = version !== this.#dataVersion;
    this.#dataVersion = version;
    return has;
  }

  /** Reserves disk space for the log, in a transaction, so that no other process writes to the log. */
  override reserveLog(): void {
    if (this.hasRoomFor(reservedLogBytes)) super.reserveLog(reservedLogBytes);
  }

  /** True if the disk has little room for more messages, and `makeRoom` may help. */
  get wantsRoom(): boolean {
    return this.#wantsRoom;
  }

  /** Gives the space of removed rows and of a long log to the file system, for a limited time. */
  makeRoom(): void {
    this.#wantsRoom = false;
    try {
      this.freeUnusedPages();
      this.checkpoint("TRUNCATE");
    } catch {
      // The disk may have no room even for this, or another process is writing. The next transaction reports the error.
    }
  }

  /** Frees unused pages in small transactions, so that other processes do not wait, and the log stays short. */
  protected freeUnusedPages(): void {
    const endMs = performance.now() + makeRoomMs;
    while (this.pragma("freelist_count") > 0 && performance.now() < endMs) {
      this.database.exec(`PRAGMA incremental_vacuum(${vacuumPages})`);
    }
  }

  /** Returns how many bytes the database has on the disk, and how many bytes are free there for this user. */
  diskSpace(): { readonly usedBytes: number; readonly freeBytes: number } {
    return { usedBytes: this.usedBytes(), freeBytes: this.fileSystem().freeBytes };
  }

  /** Returns true if the reserved space remains free when this number of bytes is stored. */
  hasRoomFor(bytes: number): boolean {
    const space = this.space();
    const kept = Math.max(freeBytesLeast, Math.min(freeBytesKept, space.bytes * freeShareKept));
    const left = freeDiskBytesAfterWrite(space, bytes) - kept;
    // When the space is low, old space is freed before a message of this size is refused.
    const isLow = left < 2 * bytes + reservedLogBytes;
    this.#wantsRoom = isLow &&
      (space.unusedBytes >= vacuumPages * sqlitePageBytes || this.logFileBytes > reservedLogBytes);
    return left >= 0;
  }
}

/** Converts an error of the database to the BatonError that a user of the store sees. */
export function toRetryStoreError(error: unknown, folder: string): BatonError {
  if (error instanceof BatonError) return error;
  const options = { cause: error };
  if (isDiskFullError(error)) {
    const full = `The disk of the message store in ${folder} is full: ${errorMessage(error)}`;
    return new BatonError("STORE_FULL", full, options);
  }
  if (isDatabaseLocked(error)) {
    const busy = `The message store in ${folder} is busy: other processes have used it for ${
      databaseBusyTimeoutMs / 1000
    } s`;
    return new BatonError("LOCK_BUSY", busy, options);
  }
  return storageError(`The message store in ${folder}`, error);
}

/**
 * Returns the error to report to a user who has no write access to the database at `path`; null if access is not the
 * cause.
 */
function accessError(error: unknown, folder: string, path: string): BatonError | null {
  if (error instanceof BatonError) return null; // the sentence contains a path, which may contain any word
  if (!/readonly|unable to open/i.test(errorMessage(error)) || (mayWrite(folder) && mayWrite(path))) return null;
  const { uid } = statSync(folder);
  const owner = uid === process.geteuid?.() ? "this user" : findUserName(String(uid)) ?? `user ${uid}`;
  // Even a process that only reads a write-ahead log writes to shared memory, which is a file next to the log.
  const why =
    `readers write to its log, too; the owner of the store is ${owner}, this process runs as ${ownUserName()}`;
  return new BatonError("IO", `The message store in ${folder} cannot be opened without write access: ${why}`, {
    cause: error,
  });
}

function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Checks that the folder has a store. Throws CONFIG if it has none, or IO if this user cannot see whether it has one.
 */
export function requireStoreIn(folder: string): void {
  const path = join(folder, retryDatabaseFileName);
  let why = "is missing";
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found !== undefined && found.size > 0) return;
    if (found !== undefined) why = "is empty";
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOTDIR") throw toRetryStoreError(error, folder);
  }
  throw new BatonError("CONFIG", `There is no message store in ${folder}: ${retryDatabaseFileName} ${why}`);
}

/** Creates the folder, and lets only its user read it, because bodies may be secret. */
function makeFolder(folder: string): void {
  try {
    refuseLinksOfOthers(folder);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    const message = `Cannot create the folder of the message store, ${folder}: ${systemCallErrorReason(error)}`;
    throw new BatonError("CANNOT_CREATE", message, { cause: error });
  }
}

/**
 * Creates the database file if there is none. Throws if the file has damage that SQLite would silently skip, because
 * accepted messages would be lost.
 */
function prepareStore(
  folder: string,
  { path, mustExist }: { readonly path: string; readonly mustExist: boolean },
): void {
  if (mustExist) requireStoreIn(folder);
  makeFolder(folder);
  refuseNetworkFolder(folder);
  const damage = findWalDamage(path);
  if (damage !== null) throw new BatonError("IO", `The message store in ${folder} cannot be opened: ${damage}`);
  const found = statSync(path, { throwIfNoEntry: false });
  // SQLite takes an empty file for a new database, but baton never leaves an empty file behind.
  if (found?.size === 0) throw new BatonError("CONFIG", emptyFileMessage(path));
  // This setting works only before the first table is created. It lets the file shrink later.
  if (found === undefined) createDatabaseFile(path, "PRAGMA auto_vacuum = INCREMENTAL");
}

function addStoreName(database: DatabaseSync): void {
  const { store } = sqliteRetryTables;
  database.prepare(store.insert.replace("INSERT", "INSERT OR IGNORE")).run(
    ...store.valuesToBind({ id: 0, name: storeName(), paused: 0, redrives: 0 }),
  );
}

function emptyFileMessage(path: string): string {
  return `The message store ${path} is empty: it was truncated, and its messages are lost. Restore a copy, or remove ` +
    "it and the files next to it whose names start with the same name, to start with an empty store";
}

/**
 * Returns 40 random bits in Crockford's base 32. All message ids start with them, so that ids of different stores
 * differ.
 */
function storeName(): string {
  const digits = "0123456789abcdefghjkmnpqrstvwxyz";
  return [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => digits[byte & 31]).join("");
}

function whereOf(table: string, key: number | string): string {
  return table === "messages" ? "of this store" : `of this store (${key})`;
}

/** Type numbers of network file systems, as statfs(2) returns them; linux/magic.h defines them. */
const networkTypes: Readonly<Record<number, string>> = {
  0x6969: "NFS",
  0xff534d42: "CIFS",
  0xfe534d42: "SMB2",
  0x517b: "SMB",
  0x5346414f: "AFS",
  0x6b414653: "AFS",
  0x73757245: "Coda",
  0x00c36400: "Ceph",
  0x0bd00bd0: "Lustre",
  0x47504653: "GPFS",
  0x7461636f: "OCFS2",
  0x01161970: "GFS2",
  0x01021997: "9P",
};
const fuseType = 0x65735546;

/** Matches the types of network file systems in user space, as /proc/self/mountinfo shows them. */
const networkFuse = /^fuse\.(sshfs|glusterfs|s3fs|gcsfuse|ceph|juicefs|rclone|davfs|curlftpfs|hdfs|beegfs|moosefs|mfs)/;

/**
 * Throws CONFIG if the folder is on a network file system. File locks and the shared memory of the log work on one
 * machine only, so two machines that write to a store would destroy it.
 */
export function refuseNetworkFolder(folder: string, typeOf: (folder: string) => number = fileSystemType): void {
  const type = typeOf(folder) >>> 0;
  const name = networkTypes[type] ?? (type === fuseType ? networkFuseAt(folder) : null);
  if (name === null) return;
  throw new BatonError(
    "CONFIG",
    `The message store cannot be in ${folder}: it is on a network file system (${name}), but a store belongs to one ` +
      "machine; name a folder on a disk of this machine with --store",
  );
}

function fileSystemType(folder: string): number {
  return statfsSync(folder).type;
}

/** Returns the type of the mount that contains the folder; null if it is not a network file system in user space. */
function networkFuseAt(folder: string): string | null {
  try {
    const path = realpathSync(folder);
    const mounts = readFileSync("/proc/self/mountinfo", "utf8").split("\n").map((line) => {
      const [before = "", after = ""] = line.split(" - ");
      return { point: before.split(" ")[4] ?? "", type: after.split(" ")[0] ?? "" };
    });
    const above = mounts.filter(({ point }) => point === "/" || path === point || path.startsWith(`${point}/`));
    const nearest = above.reduce((one, other) => (other.point.length >= one.point.length ? other : one), {
      point: "",
      type: "",
    });
    return networkFuse.test(nearest.type) ? nearest.type : null;
  } catch {
    return null;
  }
}

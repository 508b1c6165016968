/**
 * The database of a topic store in an SQLite file. One process owns the file; other processes may read it (backup,
 * verify). All methods are synchronous, for the storage thread.
 */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { BatonError, errorMessage } from "../../../base/errors.ts";
import { createPrivateFile } from "../../../base/storage/durable_file.ts";
import { SqliteFile, sqlitePageBytes } from "../../../base/storage/sqlite_file.ts";
import { checkSqliteFormat, readSqlitePragma, type SqliteFormat } from "../../../base/storage/sqlite_format.ts";
import { isDiskFullError, storageError } from "../../../base/storage/storage_error.ts";
import { findWalDamage } from "../../../base/storage/wal_check.ts";
import type { SqlRow } from "../../../base/storage/sql_row.ts";
import { isSqliteDamageError } from "../../../base/storage/checksum_table.ts";
import { readOrIfDamaged, StoreDamageLog } from "../../../base/storage/damage.ts";
import { topicDatabaseName } from "../thread/topic_store_messages.ts";
import { sqliteTopicTables, topicStoreApplicationId, topicStoreFormat, topicStoreSchema } from "./topic_tables.ts";

const logBytes = 8 << 20;
/** The size of the log, in bytes, from which on `topic_store_checkpoint_worker.ts` copies it into the database. */
export const logCheckpointBytes = 4 << 20;
/**
 * The size of the log, in bytes, from which on the storage thread itself copies it, and waits for the end of the copy.
 */
export const blockingLogCheckpointBytes = 32 << 20;
/**
 * How long a put on a nearly full disk waits for readers of the log, and how long later puts then do not wait again, in
 * milliseconds.
 */
const readersMs = 500;
const readersPauseMs = 10_000;
/** How long a transaction waits for other processes, in milliseconds. They only read the database. */
const busyMs = 5_000;

/** Thrown if another process owns the data now. */
class StoreTakenOver extends Error {}

export { isDiskFullError, type SqlRow, topicDatabaseName };

export class TopicDatabase extends SqliteFile {
  #damagedIndexes: ReadonlySet<number> | "all" | null = null;
  #logIsReadUntilMs = -Infinity;
  readonly damage = new StoreDamageLog();

  /**
   * Throws LOCK_BUSY if another process owns the directory, CONFIG for another format, or IO for any other failure. A
   * damaged log is also an IO error, unless `acceptDamagedLog` permits the loss of unreadable data.
   */
  constructor(dataDir: string, { acceptDamagedLog = false }: { readonly acceptDamagedLog?: boolean } = {}) {
    const path = join(dataDir, topicDatabaseName);
    super({
      format: topicFormat(dataDir),
      busyMs,
      // `auto_vacuum` is set before the first table is created, so that the file can shrink later.
      pragmas: `PRAGMA auto_vacuum = INCREMENTAL; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -16384;
        PRAGMA journal_size_limit = ${2 * blockingLogCheckpointBytes}`,
      owner: {
        column: "name",
        busy: () => new BatonError("LOCK_BUSY", `Another server uses the topic store in ${dataDir}`),
        takenOver: () => new StoreTakenOver(`Another server has opened the topic store in ${dataDir}`),
      },
      makeFolder: () => mkdirSync(dataDir, { recursive: true, mode: 0o700 }),
      prepare: () => {
        // SQLite would silently ignore the damaged part. Messages that were answered with OK would then be lost.
        const damage = acceptDamagedLog ? null : findWalDamage(path);
        if (damage !== null) throw new BatonError("IO", damagedLogMessage(dataDir, damage));
        createPrivateFile(path);
      },
      addFirstRows: (database) => {
        const { store } = sqliteTopicTables;
        const row = store.valuesToBind({ id: 0, name: crypto.randomUUID() });
        database.prepare(store.insert.replace("INSERT", "INSERT OR IGNORE")).run(...row);
      },
      openError: (error) => topicStoreError(error, dataDir),
      checksFiles: true, // another owner is detected by its rows
    });
  }

  /**
   * The clients with puts that an index does not find, according to the check when the store was opened or last
   * repaired.
   */
  get damagedIndexes(): ReadonlySet<number> | "all" {
    return this.#damagedIndexes ??= clientsOfDamagedIndexes(this);
  }

  checkIndexesAgain(): void {
    this.#damagedIndexes = null;
  }

  /** The random id that was created with the store. Throws DamageError. */
  get storeId(): string {
    const { store } = sqliteTopicTables;
    const row = this.get(`SELECT ${store.allColumns} FROM store`) ?? {};
    return String(this.damage.requireIntactRow(store, row, "of this store")["name"]);
  }

  /**
   * Runs work in the open transaction. If SQLite finds damage, undoes the work and returns the text of the error;
   * otherwise returns null.
   */
  runUnlessDamaged(work: () => void): string | null {
    this.statement("SAVEPOINT work").run();
    try {
      work();
      this.statement("RELEASE work").run();
      return null;
    } catch (error) {
      // A unique index cannot contain two equal rows unless it is damaged.
      if (!isSqliteDamageError(error) && !errorMessage(error).startsWith("UNIQUE constraint failed")) throw error;
      this.database.exec("ROLLBACK TO work; RELEASE work");
      return errorMessage(error);
    }
  }

  /** Copies the log into the database as far as the disk has space. The rest can still be read from the log. */
  override checkpoint(): void {
    try {
      super.checkpoint();
    } catch (error) {
      if (!isDiskFullError(error)) throw error;
      this.countLogged(-this.loggedBytes);
    }
  }

  /** Gives up to `pages` unused pages back to the file system. Returns true if there may be more unused pages. */
  shrink(pages: number): boolean {
    const free = this.pragma("freelist_count");
    if (free === 0) return false;
    try {
      this.database.exec(`PRAGMA incremental_vacuum(${pages})`);
    } catch (error) {
      if (!isDiskFullError(error)) throw error;
      return false; // this operation itself needs some space
    }
    this.countLogged(pages * sqlitePageBytes);
    return free > pages;
  }

  /** True if a burst of writes has made the log much longer than its reserved size. */
  get hasLongLog(): boolean {
    return this.logFileBytes >= 2 * logBytes;
  }

  /** Truncates the log. Does nothing if other processes still read the log after `waitMs`. */
  shortenLog(waitMs = 0): void {
    this.database.exec(`PRAGMA busy_timeout = ${waitMs}`);
    try {
      super.checkpoint("TRUNCATE");
    } catch (error) {
      if (!isDiskFullError(error)) throw error;
    } finally {
      this.database.exec(`PRAGMA busy_timeout = ${busyMs}`);
    }
  }

  /** Shrinks a long log to give space back to the file system. Returns true if the log became shorter. */
  freeLog(): boolean {
    const before = this.logFileBytes;
    if (this.inTransaction || before <= logBytes || performance.now() < this.#logIsReadUntilMs) return false;
    this.shortenLog(readersMs);
    const isShorter = this.logFileBytes < before;
    if (!isShorter) this.#logIsReadUntilMs = performance.now() + readersPauseMs;
    return isShorter;
  }

  override reserveLog(): void {
    super.reserveLog(logBytes);
  }
}

/**
 * Opens the database for reading, even while a server owns it. Changes nothing. Makes no checkpoint at the end, because
 * a checkpoint would remove the evidence of a damaged log. Throws CONFIG if there is no store of a known format.
 */
export function openTopicStoreToRead(dataDir: string): DatabaseSync {
  const path = join(dataDir, topicDatabaseName);
  if (!existsSync(path)) {
    throw new BatonError("CONFIG", `There is no topic store in ${dataDir}: ${topicDatabaseName} is missing`);
  }
  try {
    const database = new DatabaseSync(path, { readOnly: true });
    database.exec(`PRAGMA busy_timeout = ${busyMs}`);
    checkSqliteFormat(database, topicFormat(dataDir));
    // A file without a format has no tables.
    if (readSqlitePragma(database, "application_id") === 0) {
      database.close();
      throw new BatonError(
        "CONFIG",
        `There is no topic store in ${dataDir}: ${topicDatabaseName} is empty or truncated`,
      );
    }
    return database;
  } catch (error) {
    throw topicStoreError(error, dataDir);
  }
}

export function topicStoreError(error: unknown, dataDir: string): BatonError {
  if (error instanceof StoreTakenOver) return new BatonError("LOCK_BUSY", error.message);
  return storageError(`The topic store in ${dataDir}`, error);
}

function topicFormat(folder: string): SqliteFormat {
  const path = join(folder, topicDatabaseName);
  return {
    what: "topic store",
    folder,
    path,
    applicationId: topicStoreApplicationId,
    format: topicStoreFormat,
    schema: topicStoreSchema,
  };
}

function damagedLogMessage(dataDir: string, damage: string): string {
  return `The topic store in ${dataDir} cannot be opened: ${damage}. Later messages cannot be read. ` +
    "Put a backup in its place; if there is none, continue with the readable part: " +
    "baton pubsub server restore --id ID --data-dir FOLDER --accept-loss";
}

/** The indexes that find the puts of clients. SQLite does not compare these indexes with their tables. */
const putIndexes = [
  { table: "resolved", index: "resolved_window", columns: "id, client, session" },
  { table: "msg_ids", index: "msg_ids_client", columns: "id, client" },
] as const;

/**
 * Returns the IDs of clients with a row that only an index or only its table has. Returns "all" if an index cannot be
 * read. If this check did not exist and an index did not find a row, a repeated put would be stored again.
 */
function clientsOfDamagedIndexes(database: TopicDatabase): ReadonlySet<number> | "all" {
  const find = () =>
    putIndexes.flatMap((check) => indexAgrees(database, check) ? [] : findDifferences(database, check));
  const rows = readOrIfDamaged("all", find, isSqliteDamageError);
  return rows === "all" ? rows : new Set(rows.map(({ client }) => Number(client)));
}

/** Returns true if an index and its table have equal sums. Comparing all rows would take ten times as long. */
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
  const stored = rows("NOT INDEXED");
  const found = rows(`INDEXED BY ${index}`);
  const either = `SELECT client FROM (${stored} EXCEPT ${found}) UNION SELECT client FROM (${found} EXCEPT ${stored})`;
  return database.all(`SELECT client FROM (${either}) WHERE client BETWEEN 0 AND ${Number.MAX_SAFE_INTEGER}`);
}

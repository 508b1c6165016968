/**
 * Reads the rows of clients from SQLite and verifies their checksums. The caller must first write changes that are only
 * in memory.
 */
import { decodeResolvedPutCounters } from "../../wire/topic_records.ts";
import { DamageError, describeDamagedRow, readOrIfDamaged } from "../../../base/storage/damage.ts";
import { type ChecksumTable, isSqliteDamageError } from "../../../base/storage/checksum_table.ts";
import { fingerprintMessage } from "../decisions/message_fingerprint.ts";
import {
  decodeClientRow,
  decodeStoredName,
  encodeStoredName,
  type StoredMsgId,
  type TopicClient,
} from "../rows/topic_client.ts";
import { PublisherWindow } from "../decisions/publisher_window.ts";
import type { ClientReader, LoadedTopicClients } from "../rows/topic_rows.ts";
import type { SqlRow, TopicDatabase } from "./topic_database.ts";
import { sqliteTopicTables } from "./topic_tables.ts";

/** SQL that counts the rows of each client in the order of an index. */
const counting = {
  windows: "SELECT client, count(*) AS n FROM windows GROUP BY client",
  resolved: "SELECT client, count(*) AS n FROM resolved INDEXED BY resolved_window GROUP BY client",
  msg_ids: "SELECT client, count(*) AS n FROM msg_ids INDEXED BY msg_ids_client GROUP BY client",
} as const;

export type ClientPutTable = keyof typeof counting;

/**
 * The number of rows that each client has in the tables of its puts. If the disk has damaged an index, the index may
 * find too few rows, and these numbers reveal that. Otherwise a repeated put would be stored again.
 */
export class ClientPutRowCounts {
  /** The numbers by client, for each table. Null for a table that cannot be read; its clients are damaged anyway. */
  readonly #counts = new Map<string, Map<number, number> | null>();

  constructor(database: TopicDatabase) {
    this.readAgain(database);
  }

  /** Counts the rows again. All changes must be written first. */
  readAgain(database: TopicDatabase): void {
    for (const [table, sql] of Object.entries(counting)) {
      const rows = readOrIfDamaged(null, () => database.all(sql), isSqliteDamageError);
      this.#counts.set(table, rows && new Map(rows.map(({ client, n }) => [Number(client), Number(n)])));
    }
  }

  /** Adds the number of inserted rows; a negative number for deleted rows. */
  add(table: ClientPutTable, client: number, rows: number): void {
    const counts = this.#counts.get(table);
    counts?.set(client, (counts.get(client) ?? 0) + rows);
  }

  forget(client: number): void {
    for (const counts of this.#counts.values()) counts?.delete(client);
  }

  /** Returns true if the client has this number of rows, or if the number is unknown. */
  matchesCount(table: string, client: number, found: number): boolean {
    const counts = this.#counts.get(table);
    return counts === null || counts === undefined || (counts.get(client) ?? 0) === found;
  }
}

/** The number of clients that an export reads with one statement. */
const clientsPerPage = 256;

const readClients = `SELECT ${sqliteTopicTables.clients.allColumns} FROM clients`;

export class SqliteClientRows implements ClientReader {
  readonly #database: TopicDatabase;
  readonly counts: ClientPutRowCounts;

  constructor(database: TopicDatabase) {
    this.#database = database;
    this.counts = new ClientPutRowCounts(database);
  }

  /**
   * Returns the subscribers of a topic by name, the number of its clients, and a description of damage. A client with a
   * damaged or missing row may have been a subscriber, or may repeat an old put.
   */
  load(topicId: number, topic: string, count: number): LoadedTopicClients {
    const where = `of topic ${JSON.stringify(topic)}`;
    const subscribers = new Map<string, TopicClient>();
    const names = new Set<number>();
    const rows = this.#rowsOf(topicId, where);
    let damaged: string | null = null;
    let plain = 0;
    for (const row of rows ?? []) {
      if (row["session"] === 0) plain++;
      if (row["name"] instanceof Uint8Array) names.add(fingerprintMessage(row["name"]));
      if (!sqliteTopicTables.clients.isIntact(row) || row["topic"] !== topicId) {
        damaged = this.#database.damage.reportDamage(describeDamagedRow("clients", row["id"], where)).message;
      } else if (row["position"] !== null) {
        const client = decodeClientRow(row);
        subscribers.set(client.name, client);
      }
    }
    if (rows !== null && damaged === null && !this.#indexFindsAll(topicId, where)) {
      damaged = this.#database.damage.reportDamage(`the index of the clients ${where} is damaged`).message;
    }
    if (rows?.length !== count) {
      const found = rows === null ? "they cannot be read" : `${rows.length} were found`;
      damaged = this.#database.damage.reportDamage(`${count} clients ${where} were stored, but ${found}`).message;
    }
    return { subscribers, count: Math.max(count, rows?.length ?? 0), plain, damaged, names };
  }

  #rowsOf(topicId: number, where: string): SqlRow[] | null {
    const sql = `${readClients} WHERE id IN (SELECT id FROM clients WHERE topic = ?)`;
    return readOrIfDamaged(
      null,
      () => this.#readOrReport(`the clients ${where}`, () => this.#database.all(sql, topicId)),
    );
  }

  /**
   * Returns true if the index finds each client by name. A client that the index does not find would be treated as new.
   */
  #indexFindsAll(topicId: number, where: string): boolean {
    const found = "SELECT id, name FROM clients INDEXED BY clients_name WHERE topic = ?";
    const sql = `SELECT count(*) AS n FROM (${found}) AS found LEFT JOIN clients AS stored ON stored.id = found.id
      WHERE stored.name IS NOT found.name`;
    const read = () => this.#database.get(sql, topicId)?.["n"];
    return readOrIfDamaged(null, () => this.#readOrReport(`the clients ${where}`, read)) === 0;
  }

  findClient(topicId: number, name: string): TopicClient | null {
    const row = this.#readOrReport(`client ${JSON.stringify(name)}`, () => {
      const of = "WHERE id = (SELECT id FROM clients WHERE topic = ? AND name = ?)";
      return this.#database.get(`${readClients} ${of}`, topicId, encodeStoredName(name));
    });
    if (row === undefined) return null;
    const client = decodeClientRow(this.#verifyRow(sqliteTopicTables.clients, row, name));
    if (client.name === name && client.topicId === topicId) return client;
    throw this.notFoundError(name);
  }

  notFoundError(name: string): DamageError {
    return this.#database.damage.reportDamage(
      `the index of the clients is damaged: ${JSON.stringify(name)} is not found by it`,
    );
  }

  clientsAfter(topicId: number, name: string | null): TopicClient[] {
    const rows = this.#database.all(
      `${readClients} WHERE topic = ? AND name > ? ORDER BY name LIMIT ${clientsPerPage}`,
      topicId,
      name === null ? new Uint8Array(0) : encodeStoredName(name),
    );
    const { damage } = this.#database;
    return rows.map((row) =>
      decodeClientRow(damage.requireIntactRow(sqliteTopicTables.clients, row, "of an exported topic"))
    );
  }

  oldestPublishers(topicId: number, most: number): TopicClient[] {
    const sql = `${readClients} WHERE topic = ? AND position IS NULL AND op = 0 AND op_session = 0 AND session > 0
      ORDER BY id LIMIT ?`;
    const rows = this.#readOrReport("the clients of a topic", () => this.#database.all(sql, topicId, most));
    return rows.filter((row) => sqliteTopicTables.clients.isIntact(row)).map((row) => decodeClientRow(row));
  }

  readWindows(client: TopicClient): Map<number, PublisherWindow> {
    const windows = new Map<number, PublisherWindow>();
    const sql = `SELECT ${sqliteTopicTables.windows.allColumns} FROM windows WHERE client = ?`;
    this.#requireIndexes(client);
    const what = `the windows of client ${JSON.stringify(client.name)}`;
    const rows = this.#readOrReport(what, () => this.#database.all(sql, client.id));
    this.#requireAll("windows", client, rows.length);
    for (const row of rows) {
      const session = Number(this.#verifyRow(sqliteTopicTables.windows, row, client.name)["session"]);
      windows.set(session, new PublisherWindow(session, decodeStoredName(row["key"]), Number(row["first_unacked"])));
    }
    for (const row of this.#rowsOfClient(client, sqliteTopicTables.resolved)) {
      const window = windows.get(Number(row["session"]));
      if (window === undefined || !(row["entries"] instanceof Uint8Array)) {
        throw this.#database.damage.reportDamage(`${what}: one is missing`);
      }
      const entries = decodeResolvedPutCounters(row["entries"]);
      for (const entry of entries) window.add(entry);
      window.addRow(Number(row["id"]), entries);
      window.raiseBound(Number(row["first_unacked"]));
    }
    return windows;
  }

  readKeys(client: TopicClient): StoredMsgId[] {
    return this.#rowsOfClient(client, sqliteTopicTables.msg_ids).map((row) => ({
      rowId: Number(row["id"]),
      key: decodeStoredName(row["key"]),
      id: Number(row["message"]),
      fingerprint: Number(row["fingerprint"]),
    }));
  }

  /** Returns the rows of a client in a table of its puts, in the order of their ids. */
  #rowsOfClient({ id, name }: TopicClient, table: ChecksumTable<string>): SqlRow[] {
    this.#requireIndexes({ id, name });
    // The IDs come from the index, all other columns from the table. This reveals a row that only the index has.
    const columns = [...table.columns, "sum"].map((column) => `stored.${column}`).join(", ");
    const sql = `SELECT ${columns} FROM (SELECT id FROM ${table.name} WHERE client = ?) AS found
      LEFT JOIN ${table.name} AS stored ON stored.id = found.id ORDER BY found.id`;
    const rows = this.#readOrReport(
      `the ${table.name} of client ${JSON.stringify(name)}`,
      () => this.#database.all(sql, id),
    );
    // If the index contains a row twice, another row may be missing.
    this.#requireAll(table.name, { id, name }, new Set(rows.map((row) => row["id"])).size);
    for (const row of rows) {
      this.#verifyRow(table, row, name);
      if (row["client"] !== id) {
        throw this.#database.damage.reportDamage(describeDamagedRow(table.name, row["id"], describeClient(name)));
      }
    }
    return rows;
  }

  #requireIndexes({ id, name }: Pick<TopicClient, "id" | "name">): void {
    const { damagedIndexes } = this.#database;
    if (damagedIndexes !== "all" && !damagedIndexes.has(id)) return;
    throw this.#database.damage.reportDamage(`the index of the puts of client ${JSON.stringify(name)} is damaged`);
  }

  #requireAll(table: string, { id, name }: Pick<TopicClient, "id" | "name">, found: number): void {
    if (this.counts.matchesCount(table, id, found)) return;
    throw this.#database.damage.reportDamage(`the index of the ${table} of client ${JSON.stringify(name)} is damaged`);
  }

  #verifyRow(table: ChecksumTable<string>, row: SqlRow, name: string): SqlRow {
    return this.#database.damage.requireIntactRow(table, row, describeClient(name));
  }

  #readOrReport<T>(what: string, read: () => T): T {
    return this.#database.damage.detectDamage(what, read);
  }
}

const describeClient = (client: string) => `of client ${JSON.stringify(client)}`;

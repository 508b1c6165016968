/**
 * The schema of a shared store: creates its tables (`--migrate`), and checks on each new connection that this program
 * may use them. All tables of a schema share one format number. The callers define the tables.
 */
import { randomUUID } from "node:crypto";
import { type DatabaseAddress, describeDatabase } from "./database_address.ts";
import { connectToPrimary, type PrimaryConnection, type PrimaryConnectOptions } from "./primary_connection.ts";
import { readSystemId } from "./database_checks.ts";
import { StatementError } from "./statement_error.ts";

/** The number of the format that this program reads and writes. */
export const sharedStoreFormatNumber = 1;

export interface SharedStoreFormat {
  /** A random ID that differs for every store. A copy of the tables keeps the ID. */
  readonly storeId: string;
  readonly format: number;
}

/** The key ("baton" as bytes) of the advisory lock that lets only one migration of a database run at a time. */
const migrationLock = 0x626174_6f6en;

/**
 * Creates the schema and its tables, or upgrades them to this program's format, in one transaction. Several programs
 * may call this at the same time. `tables` are statements that do nothing if their table exists; they write names with
 * `SCHEMA.`. Rejects with CONFIG if a newer baton made the tables, or with StatementError if the role may not create
 * them. After OUTCOME_UNKNOWN the caller may repeat the migration.
 */
export async function migrateDatabase(
  address: DatabaseAddress,
  { tables, ...connecting }: PrimaryConnectOptions & { readonly tables: readonly string[] },
): Promise<SharedStoreFormat> {
  const connection = await connectToPrimary(address, connecting);
  const systemId = await readSystemId(connection);
  let step = 0;
  const run = (text: string, values: Parameters<PrimaryConnection["run"]>[1] = [], rowsMin = 0) =>
    connection.run(
      { name: `migrate_${step++}`, text: insertSchemaName(text, address.schema), rowsMin },
      values,
      connecting.signal,
    );
  try {
    await run("BEGIN");
    await run("SET LOCAL idle_in_transaction_session_timeout = '60s'");
    await run("SELECT pg_advisory_xact_lock($1::bigint)", [migrationLock]);
    // Asks first whether the schema is missing: CREATE SCHEMA IF NOT EXISTS needs the right to create schemas even if
    // the schema exists.
    const [schema] = await run("SELECT to_regnamespace($1) IS NULL AS missing", [address.schema]);
    if (schema?.["missing"] === true) await run("CREATE SCHEMA SCHEMA");
    await run(
      "CREATE TABLE IF NOT EXISTS SCHEMA.store (one bool PRIMARY KEY DEFAULT true CHECK (one), id uuid NOT NULL, " +
        "format int NOT NULL, system_id text)",
    );
    const [before] = await run("SELECT format FROM SCHEMA.store");
    if (Number(before?.["format"] ?? 0) > sharedStoreFormatNumber) {
      throw newerFormat(address, Number(before?.["format"]));
    }
    for (const table of tables) await run(table);
    const [after] = await run(
      "INSERT INTO SCHEMA.store (id, format, system_id) VALUES ($1::uuid, $2, $3::text) " +
        "ON CONFLICT (one) DO UPDATE SET format = excluded.format, " +
        "system_id = COALESCE(store.system_id, excluded.system_id) RETURNING id",
      [randomUUID(), sharedStoreFormatNumber, systemId],
      1,
    );
    await run("COMMIT");
    return { storeId: String(after?.["id"]), format: sharedStoreFormatNumber };
  } finally {
    connection.close();
  }
}

/**
 * Records the current cluster as the home of the tables. An operator does this after copying the tables or upgrading
 * the cluster. Rejects with StatementError.
 */
export async function acceptMovedDatabase(address: DatabaseAddress, connecting: PrimaryConnectOptions): Promise<void> {
  const connection = await connectToPrimary(address, connecting);
  try {
    const text = insertSchemaName("UPDATE SCHEMA.store SET system_id = $1::text RETURNING id", address.schema);
    await connection.run({ name: "store_moved", text, rowsMin: 1 }, [await readSystemId(connection)]);
  } catch (error) {
    throw isNoTables(error) ? noTables(address, error) : error;
  } finally {
    connection.close();
  }
}

/**
 * Reads the format of the tables on a new connection. Rejects with StatementError CONFIG if this program must not write
 * to them: a table is missing, the format differs, or this is not the cluster in which they were made.
 */
export async function requireSharedStore(
  connection: PrimaryConnection,
  address: DatabaseAddress,
  tables: readonly string[] = [],
): Promise<SharedStoreFormat> {
  const text = insertSchemaName("SELECT id, format, system_id FROM SCHEMA.store", address.schema);
  let row: Awaited<ReturnType<PrimaryConnection["run"]>>[number] | undefined;
  try {
    [row] = await connection.run({ name: "store_format", text }, []);
  } catch (error) {
    throw isNoTables(error) ? noTables(address, error) : error;
  }
  if (row === undefined) throw noTables(address, null);
  const format = Number(row["format"]);
  if (format > sharedStoreFormatNumber) throw newerFormat(address, format);
  if (format < sharedStoreFormatNumber) {
    throw configError(
      `The tables of the database ${
        describeDatabase(address)
      } have format ${format}, and this baton needs ${sharedStoreFormatNumber}: ` +
        "start it once with --migrate, as a role that may change them",
    );
  }
  const madeIn = row["system_id"] ?? null;
  const systemId = await readSystemId(connection);
  if (madeIn !== null && systemId !== null && madeIn !== systemId) {
    throw otherCluster(address, String(madeIn), systemId);
  }
  await requireTables(connection, address, tables);
  return { storeId: String(row["id"]), format };
}

/**
 * Checks that all `tables` (statements, as for `migrateDatabase`) exist. Some tables may be missing, because several
 * products can share a schema.
 */
async function requireTables(
  connection: PrimaryConnection,
  address: DatabaseAddress,
  tables: readonly string[],
): Promise<void> {
  const text = "SELECT name FROM unnest($2::text[]) name WHERE to_regclass($1::text || '.' || name) IS NULL ORDER BY 1";
  const missing = await connection.run({ name: "store_tables", text }, [address.schema, findTableNamesInSql(tables)]);
  if (missing.length > 0) throw noTables(address, null, missing.map((row) => String(row["name"])));
}

export function findTableNamesInSql(statements: readonly string[]): string[] {
  return statements.flatMap((text) => /^CREATE TABLE IF NOT EXISTS SCHEMA\.(\w+)/.exec(text)?.[1] ?? []);
}

/**
 * Replaces `SCHEMA.` in a statement by the schema's name. The name needs no quotes, because `parseDatabaseUrl` allows
 * only plain names.
 */
export function insertSchemaName(sql: string, schema: string): string {
  return sql.replace(/\bSCHEMA\./g, `${schema}.`).replace("CREATE SCHEMA SCHEMA", `CREATE SCHEMA ${schema}`);
}

function isNoTables(error: unknown): boolean {
  return error instanceof StatementError && (error.sqlState === "42P01" || error.sqlState === "3F000");
}

function otherCluster(address: DatabaseAddress, madeIn: string, systemId: string): StatementError {
  return configError(
    `The database ${describeDatabase(address)} is in another cluster (system identifier ${systemId}) ` +
      `than the one in which its tables were made (${madeIn}): the address is wrong, or this is a copy. ` +
      "If the database was moved here, and the original will never be used again, start once with --moved",
  );
}

/** Makes the error for missing tables. `missing` lists them; it is empty if all are missing. */
function noTables(address: DatabaseAddress, cause: unknown, missing: readonly string[] = []): StatementError {
  const what = missing.length === 0 ? "tables of baton" : `table ${missing.join(", ")}`;
  const message = `The database ${describeDatabase(address)} has no ${what} in the schema "${address.schema}": ` +
    `start once with --migrate, as a role that may create ${missing.length === 1 ? "it" : "them"}`;
  return configError(message, cause);
}

function newerFormat(address: DatabaseAddress, format: number): StatementError {
  return configError(
    `The tables of the database ${describeDatabase(address)} were written by a newer version (format ${format}); ` +
      `this version of baton reads format ${sharedStoreFormatNumber}: use the newer version`,
  );
}

function configError(message: string, cause: unknown = null): StatementError {
  return new StatementError(message, { outcome: "not_sent", sqlState: null, code: "CONFIG", cause });
}

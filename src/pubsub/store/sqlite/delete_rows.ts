/**
 * Deletes rows of SQLite tables even if a table and its index do not match, for example because the disk has changed a
 * bit.
 */
import { readOrIfDamaged } from "../../../base/storage/damage.ts";
import { isSqliteDamageError } from "../../../base/storage/checksum_table.ts";
import type { SqlValue } from "../../../base/storage/sql_row.ts";
import type { TopicDatabase } from "./topic_database.ts";

/**
 * Deletes rows in the open transaction. If an index is damaged, rebuilds it from its table after the deletion: before
 * the deletion, two rows may violate a unique index. Throws SQLite's error if the table itself cannot be read.
 */
export function deleteRowsDespiteDamage(
  database: TopicDatabase,
  table: string,
  condition: string,
  ...values: SqlValue[]
): void {
  const drop = () => database.run(`DELETE FROM ${table} WHERE ${condition}`, ...values);
  try {
    drop();
  } catch (error) {
    if (!isSqliteDamageError(error)) throw error;
    // Also deletes rows that only the index finds. They would otherwise be found under another client's ID.
    const found = table === "windows"
      ? []
      : readOrIfDamaged([], () => findIds(database, table, condition, values), isSqliteDamageError);
    rebuildIndexesAfter(database, table, () => {
      for (const id of found) database.run(`DELETE FROM ${table} WHERE id = ?`, id);
      drop();
    });
  }
}

/** Runs `work` on a table without its indexes, then rebuilds them, in the open transaction. */
export function rebuildIndexesAfter(database: TopicDatabase, table: string, work: () => void): void {
  const sql = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL";
  const indexes = database.all(sql, table);
  for (const { name } of indexes) database.run(`DROP INDEX ${name}`);
  work();
  for (const index of indexes) database.run(String(index["sql"]));
}

function findIds(database: TopicDatabase, table: string, condition: string, values: readonly SqlValue[]): number[] {
  return database.all(`SELECT id FROM ${table} WHERE ${condition}`, ...values).map(({ id }) => Number(id));
}

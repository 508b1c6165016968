/** Deletes rows also where a table and its index say different things, which a disk that changes a bit brings about. */
import { isDamage } from "../../storage/checksum_table.ts";
import type { SqlValue } from "../../storage/sql_row.ts";
import type { TopicDatabase } from "./topic_database.ts";

/**
 * In the open transaction. The indexes of a table that is not as they say are made again from it, behind the deletion: of two rows
 * that are the same to an index one may be among those that go. Throws what SQLite does where the table itself cannot be read.
 */
export function deleteRows(database: TopicDatabase, table: string, condition: string, ...values: SqlValue[]): void {
  const drop = () => database.run(`DELETE FROM ${table} WHERE ${condition}`, ...values);
  try {
    drop();
  } catch (error) {
    if (!isDamage(error)) throw error;
    // What only the index has as theirs goes as well: it would be found among another's.
    const found = table === "windows" ? [] : readable(() => idsOf(database, table, condition, values));
    withNewIndexes(database, table, () => {
      for (const id of found) database.run(`DELETE FROM ${table} WHERE id = ?`, id);
      drop();
    });
  }
}

/** In the open transaction: work at a table without its indexes, which are made again from what is there then. */
export function withNewIndexes(database: TopicDatabase, table: string, work: () => void): void {
  const sql = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL";
  const indexes = database.all(sql, table);
  for (const { name } of indexes) database.run(`DROP INDEX ${name}`);
  work();
  for (const index of indexes) database.run(String(index["sql"]));
}

function idsOf(database: TopicDatabase, table: string, condition: string, values: readonly SqlValue[]): number[] {
  return database.all(`SELECT id FROM ${table} WHERE ${condition}`, ...values).map(({ id }) => Number(id));
}

function readable<T>(read: () => T[]): T[] {
  try {
    return read();
  } catch (error) {
    if (isDamage(error)) return [];
    throw error;
  }
}

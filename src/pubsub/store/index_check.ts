/**
 * Checks that the indexes for clients' puts agree with their tables. If an index does not find a row, that row's checksum
 * is never checked, and a repeated put would be stored again. SQLite does not compare them by itself.
 */
import { isDamage } from "../../storage/checksum_table.ts";
import type { SqlRow } from "../../storage/sql_row.ts";

interface Reader {
  all(sql: string): SqlRow[];
}

const indexes = [
  { table: "resolved", index: "resolved_window", columns: "id, client, session" },
  { table: "msg_ids", index: "msg_ids_client", columns: "id, client" },
] as const;

/** Ids of clients with a row that only the index or only the table has; "all": the index cannot be read. */
export function clientsOfDamagedIndexes(database: Reader): ReadonlySet<number> | "all" {
  const clients = new Set<number>();
  try {
    for (const check of indexes) {
      if (agrees(database, check)) continue;
      for (const { client } of differences(database, check)) clients.add(Number(client));
    }
  } catch (error) {
    if (isDamage(error)) return "all";
    throw error;
  }
  return clients;
}

/** Comparing sums takes a tenth of the time of comparing rows. */
function agrees(database: Reader, { table, index, columns }: (typeof indexes)[number]): boolean {
  const mixed = columns.split(", ").map((column, state) => `${column} * ${[7919, 104_729, 1_299_709][state]}`).join(
    " + ",
  );
  const sum = (how: string) => `(SELECT sum((${mixed}) & 0xffffffff) FROM ${table} ${how})`;
  return Number(
    database.all(`SELECT ${sum("NOT INDEXED")} IS ${sum(`INDEXED BY ${index}`)} AS agrees`)[0]?.["agrees"],
  ) === 1;
}

function differences(database: Reader, { table, index, columns }: (typeof indexes)[number]): SqlRow[] {
  const rows = (how: string) => `SELECT ${columns} FROM ${table} ${how}`;
  const [stored, found] = [rows("NOT INDEXED"), rows(`INDEXED BY ${index}`)];
  const either = `SELECT client FROM (${stored} EXCEPT ${found}) UNION SELECT client FROM (${found} EXCEPT ${stored})`;
  return database.all(`SELECT client FROM (${either}) WHERE client BETWEEN 0 AND ${Number.MAX_SAFE_INTEGER}`);
}

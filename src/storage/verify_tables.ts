/** What every store of tables with checksums looks at when it is verified: SQLite's own structure, the schema, every row's checksum. */
import { DatabaseSync } from "node:sqlite";
import { messageOf } from "../errors.ts";
import { sentenceOf } from "./damage.ts";
import type { SqlRow } from "./sql_row.ts";
import type { ChecksumTable } from "./checksum_table.ts";

/** Takes a sentence about something that is wrong. */
export type ReportProblem = (problem: string) => void;

/** Problems that are told of one store; the rest is as many. */
const problemsMax = 100;

/** A list of problems, and what adds to it. */
export function problemList(): { readonly problems: readonly string[]; readonly say: ReportProblem } {
  const problems: string[] = [];
  return { problems, say: (problem) => void (problems.length < problemsMax && problems.push(problem)) };
}

/** What SQLite cannot read at all ends one part of a verification, not all of it. */
export function verifyPart(what: string, say: ReportProblem, look: () => void): void {
  try {
    look();
  } catch (error) {
    say(`${what} cannot be read: ${messageOf(error)}`);
  }
}

/** One moment of the database; `damaged`: a sentence about a row, null for one that is whole. */
export function verifyTables(database: DatabaseSync, { schema, tables, say, columns = {}, damaged }: {
  readonly schema: string;
  readonly tables: readonly ChecksumTable<string>[];
  readonly say: ReportProblem;
  /** What else is read of a table's rows, by its name. */
  readonly columns?: Readonly<Record<string, string>>;
  readonly damaged?: (table: ChecksumTable<string>, row: SqlRow) => string | null;
}): void {
  const rows = (sql: string) => database.prepare(sql).iterate() as IterableIterator<SqlRow>;
  verifyPart("the database", say, () => {
    for (const row of rows("PRAGMA integrity_check")) {
      if (row["integrity_check"] !== "ok") say(`SQLite: ${row["integrity_check"]}`);
    }
  });
  verifyPart("the schema", say, () => {
    using fresh = new DatabaseSync(":memory:");
    fresh.exec(schema);
    if (schemaOf(fresh) !== schemaOf(database)) say("its tables or indexes are not as they were made");
  });
  const sentence = damaged ?? ((table, row) => {
    return table.isIntact(row) ? null : sentenceOf(table.name, row["seq"] ?? row["id"], "of this store");
  });
  for (const table of tables) {
    // As it lies in the table, whatever an index says of it.
    const sql = `SELECT ${table.allColumns}${columns[table.name] ?? ""} FROM ${table.name} NOT INDEXED`;
    verifyPart(`the table ${table.name}`, say, () => {
      for (const row of rows(sql)) {
        const problem = sentence(table, row);
        if (problem !== null) say(problem);
      }
    });
  }
}

/** SQLite goes by what is written there. */
function schemaOf(database: DatabaseSync): string {
  const sql = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name";
  return JSON.stringify(database.prepare(sql).all());
}

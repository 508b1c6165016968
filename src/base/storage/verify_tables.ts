/**
 * Verifies an SQLite database whose tables have checksums: the file's structure, the schema, and every row's checksum.
 */
import type { DatabaseSync } from "node:sqlite";
import { errorMessage } from "../errors.ts";
import { noProgress, type WorkProgress } from "../support/work_progress.ts";
import { describeDamagedRow } from "./damage.ts";
import type { SqlRow } from "./sql_row.ts";
import { checkSqliteSchema } from "./sqlite_format.ts";
import type { ChecksumTable } from "./checksum_table.ts";

export type ReportStoreProblem = (problem: string) => void;

const problemsMax = 100;

/** Creates a list of problems, and a function that adds a problem to the list. */
export function newProblemList(): { readonly problems: readonly string[]; readonly addProblem: ReportStoreProblem } {
  const problems: string[] = [];
  return { problems, addProblem: (problem) => void (problems.length < problemsMax && problems.push(problem)) };
}

/**
 * Runs one part of a verification. If SQLite cannot read the data, reports that as a problem and ends only this part.
 */
export function verifyStorePart(what: string, addProblem: ReportStoreProblem, check: () => void): void {
  try {
    check();
  } catch (error) {
    addProblem(`${what} cannot be read: ${errorMessage(error)}`);
  }
}

/** Verifies a database. `damaged` must return a sentence about a damaged row, or null for an intact row. */
export function verifyStoreTables(database: DatabaseSync, options: {
  readonly schema: string;
  readonly tables: readonly ChecksumTable<string>[];
  readonly addProblem: ReportStoreProblem;
  /** More columns that `damaged` needs, as SQL text by the name of the table. */
  readonly columns?: Readonly<Record<string, string>>;
  readonly damaged?: (table: ChecksumTable<string>, row: SqlRow) => string | null;
  readonly progress?: WorkProgress;
}): void {
  const { schema, tables, addProblem, columns = {}, damaged, progress = noProgress } = options;
  const rows = (sql: string) => database.prepare(sql).iterate() as IterableIterator<SqlRow>;
  progress.startPart({ noun: null, verb: "checking the structure of the database", total: null });
  verifyStorePart("the database", addProblem, () => {
    for (const row of rows("PRAGMA integrity_check")) {
      if (row["integrity_check"] !== "ok") addProblem(`SQLite: ${row["integrity_check"]}`);
    }
  });
  verifyStorePart("the schema", addProblem, () => checkSqliteSchema(database, schema));
  const sentence = damaged ?? ((table, row) => {
    return table.isIntact(row) ? null : describeDamagedRow(table.name, row["seq"] ?? row["id"], "of this store");
  });
  progress.startPart({ noun: "row", verb: "checked", total: estimateRows(database, tables) });
  for (const table of tables) {
    // NOT INDEXED makes SQLite read the table itself instead of an index.
    const sql = `SELECT ${table.allColumns}${columns[table.name] ?? ""} FROM ${table.name} NOT INDEXED`;
    verifyStorePart(`the table ${table.name}`, addProblem, () => {
      for (const row of rows(sql)) {
        const problem = sentence(table, row);
        if (problem !== null) addProblem(problem);
        progress.add(1);
      }
    });
  }
}

/**
 * Estimates the number of rows from the lowest and highest row IDs, without reading the rows. Ignores damaged tables
 * and tables without row IDs.
 */
function estimateRows(database: DatabaseSync, tables: readonly ChecksumTable<string>[]): number {
  let total = 0;
  for (const { name } of tables) {
    try {
      const ids = database.prepare(`SELECT min(rowid) AS first, max(rowid) AS last FROM ${name}`).get();
      if (typeof ids?.["last"] === "number") total += ids["last"] - Number(ids["first"]) + 1;
    } catch {
      // the check of the table reports the reason
    }
  }
  return total;
}

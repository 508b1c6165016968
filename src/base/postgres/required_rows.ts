/**
 * The number of rows that a write has to change. A trigger that returns no row makes a database change fewer, without
 * an error. A statement with several parts has its numbers as conditions: one that is not true fails with a sentence of
 * its own, which undoes the statement.
 */

/**
 * An SQL condition that is true, or fails: a part has changed as many rows of the table as `wanted`. Both are SQL
 * expressions of numbers.
 */
export function mustChangeRowsSql(table: string, changed: string, wanted: string): string {
  return `CASE WHEN ${changed} = ${wanted} THEN true ELSE (${sentence(table, changed, wanted)})::bool END`;
}

/** Returns an SQL expression that counts rows. */
export const countRowsSql = (rows: string): string => `(SELECT count(*) FROM ${rows})`;

/** The same as a statement of PL/pgSQL, after the one that changes rows. */
export function mustHaveChangedRowsSql(table: string, wanted: string): string {
  return `GET DIAGNOSTICS changed = ROW_COUNT;
  IF changed <> ${wanted} THEN RAISE EXCEPTION '%', ${sentence(table, "changed", wanted)}; END IF;`;
}

/** A statement that changes the rows of a table that fulfil a condition, all of them, and returns their ids. */
export function changeAllRowsSql(table: string, change: string, condition: string): string {
  return `WITH wanted AS (SELECT id FROM SCHEMA.${table} WHERE ${condition} FOR UPDATE),
    changed AS (UPDATE SCHEMA.${table} t SET ${change} FROM wanted w WHERE t.id = w.id RETURNING t.id)
    SELECT id FROM changed UNION ALL SELECT NULL WHERE NOT ${
    mustChangeRowsSql(table, countRowsSql("changed"), countRowsSql("wanted"))
  }`;
}

function sentence(table: string, changed: string, wanted: string): string {
  return `'only ' || ${changed} || ' of ' || ${wanted} || ' rows of the table ${table} were changed'`;
}

const sentencePattern = /only (\d+) of (\d+) rows of the table (\w+) were changed/;

/**
 * The sentence of a condition that was not true, in the message of its error; null: there is none. Its language is not
 * that of the database.
 */
export function findMissingRowsSentence(message: string): string | null {
  return sentencePattern.exec(message)?.[0] ?? null;
}

/** A hint for operators: why a database changes fewer rows than baton needs. */
export const missingRowsHint =
  "a trigger or a rule of the database leaves out changes; baton needs them all: remove it";

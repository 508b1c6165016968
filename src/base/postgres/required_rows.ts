/**
 * SQL that makes a write fail if it changes fewer rows than it should. A trigger that suppresses rows would otherwise
 * make a database lose changes without an error. The failure undoes the statement. The message of the error has a fixed
 * sentence.
 */

/**
 * Returns an SQL condition that is true if `changed` equals `wanted` (both are SQL expressions), and otherwise raises
 * an error.
 */
export function requireChangedRowsSql(table: string, changed: string, wanted: string): string {
  return `CASE WHEN ${changed} = ${wanted} THEN true ELSE (${sentence(table, changed, wanted)})::bool END`;
}

/** Returns an SQL expression that counts rows. */
export const countRowsSql = (rows: string): string => `(SELECT count(*) FROM ${rows})`;

/** Returns PL/pgSQL that raises an error if the statement before it has not changed `wanted` rows. */
export function requireChangedRowsPlpgsql(table: string, wanted: string): string {
  return `GET DIAGNOSTICS changed = ROW_COUNT;
  IF changed <> ${wanted} THEN RAISE EXCEPTION '%', ${sentence(table, "changed", wanted)}; END IF;`;
}

/** Returns a statement that changes all rows of a table for which a condition is true, and returns their IDs. */
export function changeAllRowsSql(table: string, change: string, condition: string): string {
  return `WITH wanted AS (SELECT id FROM SCHEMA.${table} WHERE ${condition} FOR UPDATE),
    changed AS (UPDATE SCHEMA.${table} t SET ${change} FROM wanted w WHERE t.id = w.id RETURNING t.id)
    SELECT id FROM changed UNION ALL SELECT NULL WHERE NOT ${
    requireChangedRowsSql(table, countRowsSql("changed"), countRowsSql("wanted"))
  }`;
}

function sentence(table: string, changed: string, wanted: string): string {
  return `'only ' || ${changed} || ' of ' || ${wanted} || ' rows of the table ${table} were changed'`;
}

const sentencePattern = /only (\d+) of (\d+) rows of the table (\w+) were changed/;

/**
 * Finds the fixed sentence in the message of an error, in any language of the database. Returns null for other errors.
 */
export function findMissingRowsMessage(message: string): string | null {
  return sentencePattern.exec(message)?.[0] ?? null;
}

/** Advice for the operator if a statement changed fewer rows of the database than baton requires. */
export const missingRowsHint = "a trigger or a rule of the database suppresses changes that baton needs; remove it";

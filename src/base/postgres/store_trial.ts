/**
 * Finds out whether a database can store rows: a trial statement inserts a row and undoes that. An idle server thus
 * detects a full or read-only database, or revoked rights, before its clients do.
 */
import { errorMessage } from "../errors.ts";
import { findTableNamesInSql } from "./database_schema.ts";
import type { SqlStatement } from "./primary_connection.ts";
import { requireChangedRowsPlpgsql } from "./required_rows.ts";

/**
 * The sizes of the trial row in bytes. After the disk was full, the large row is used, because a small row may fit into
 * an existing file.
 */
const trialBytes = { small: 1, large: 1 << 20 } as const;
/** How long the result of a trial is reused, in milliseconds. */
const cachedMs = 1000;

export class SharedStoreWriteTrial {
  readonly #run: (statement: SqlStatement) => Promise<unknown>;
  readonly #table: string;
  readonly #tables: string;
  readonly #row: string;
  readonly #now: () => number;
  #result: { readonly why: string | null; readonly untilMs: number } | null = null;
  /** True if a write found the disk full, and no trial has succeeded since. */
  #wasFull = false;

  /**
   * `row` is the SQL text with the columns and values of a row with a unique key; the text `BYTES` stands for its
   * content. `tables` are the statements that create the tables; the role needs rights to these tables.
   */
  constructor(
    { table, tables, row, now, run }: {
      readonly table: string;
      readonly tables: readonly string[];
      readonly row: string;
      readonly now: () => number;
      readonly run: (statement: SqlStatement) => Promise<unknown>;
    },
  ) {
    this.#table = table;
    this.#row = row;
    this.#now = now;
    this.#run = run;
    this.#tables = findTableNamesInSql(tables).map((name) => `'${name}'`).join(", ");
  }

  get wasFull(): boolean {
    return this.#wasFull;
  }

  /** Records that a write has found the disk full. */
  noteFull(): void {
    this.#wasFull = true;
    this.#result = null;
  }

  /** Returns the reason why the database cannot store a row, or null if it can. */
  async whyNotStored(): Promise<string | null> {
    const known = this.#result;
    if (known !== null && this.#now() < known.untilMs) return known.why;
    const why = await this.#run(this.#statement(this.#wasFull ? "large" : "small")).then(() => null, errorMessage);
    if (why === null) this.#wasFull = false;
    this.#result = { why, untilMs: this.#now() + cachedMs };
    return why;
  }

  /**
   * Returns the trial statement: it inserts a row, and undoes that with a handled exception, which the database does
   * not log.
   */
  #statement(size: keyof typeof trialBytes): SqlStatement {
    const row = this.#row.replace("BYTES", `decode(repeat('00', ${trialBytes[size]}), 'hex')`);
    const has = (right: string) => `has_table_privilege('SCHEMA.' || name, '${right}')`;
    const refusal = "RAISE insufficient_privilege USING MESSAGE = 'permission denied for table ' || lacking";
    const text = `DO $$ DECLARE changed bigint; lacking text; BEGIN
  SELECT name INTO lacking FROM unnest(ARRAY[${this.#tables}]) name
    WHERE NOT (${["SELECT", "INSERT", "UPDATE", "DELETE"].map(has).join(" AND ")}) LIMIT 1;
  IF lacking IS NOT NULL THEN ${refusal}; END IF;
  INSERT INTO SCHEMA.${this.#table} ${row};
  ${requireChangedRowsPlpgsql(this.#table, "1")}
  RAISE SQLSTATE 'BT000'; EXCEPTION WHEN SQLSTATE 'BT000' THEN NULL; END $$`;
    return { name: `trial_${size}`, text };
  }
}

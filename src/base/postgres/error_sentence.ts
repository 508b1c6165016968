/** Sentences for errors of a database, by their SQLSTATE: what it says, and what its operator can do. Pure. */
import type pg from "pg";
import { errorMessage } from "../errors.ts";
import type { DatabaseAddress } from "./database_address.ts";
import { printable } from "../support/text.ts";

/** The sentence of an error of the database. `name`: the statement; empty: there was none. */
export function describeDatabaseError(
  error: unknown,
  sqlState: string,
  name: string,
  address: DatabaseAddress,
): string {
  const hint = hintOf(sqlState, error, address);
  const codes = [sqlState, name].filter(Boolean).join(", ");
  return `${printable(errorMessage(error))} (${codes})${hint === null ? "" : `: ${hint}`}`;
}

/** The advice for the operator of the database; null: its own sentence says enough. */
function hintOf(sqlState: string, error: unknown, { user, schema, database }: DatabaseAddress): string | null {
  switch (sqlState) {
    case "42501":
      // The text of the error is in the language of the database.
      if ((error as pg.DatabaseError).routine === "check_enable_rls") {
        return `a policy hides rows of the table; disable it (ALTER TABLE … DISABLE ROW LEVEL SECURITY), or give the role "${user}" BYPASSRLS`;
      }
      return `the role "${user}" needs USAGE on the schema "${schema}", and SELECT, INSERT, UPDATE and DELETE on its tables; ` +
        "for --migrate it has to own them, or be allowed to create the schema";
    case "42P01":
    case "42703":
    case "42883":
    case "3F000":
      return `the schema "${schema}" lacks it: start once with --migrate, as a role that may create it`;
    case "26000":
    case "42P05":
      return "prepared statements are those of others, as behind a pooler in transaction mode; connect to PostgreSQL itself";
    case "22021":
    case "22P05":
      return `the encoding of the database "${database}" lacks characters: create it with ENCODING 'UTF8'`;
    case "25006":
      return "the database is read-only: a standby, or default_transaction_read_only is on";
    case "53100":
      return "the disk of the database is full";
    case "53200":
      return "the database is out of memory";
    case "53300":
      return `the database has no free connection: see max_connections, and CONNECTION LIMIT of "${user}" and of "${database}"`;
    default:
      return null;
  }
}

/**
 * The error of a failed statement. It says whether the database may have changed, what the database reports, and what
 * the operator can do. Pure.
 */
import { BatonError, type ErrorCode, errorMessage } from "../errors.ts";
import type pg from "pg";
import type { DatabaseAddress } from "./database_address.ts";
import { printable } from "../support/text.ts";

/**
 * The effect of a failed statement. `not_sent`: the statement did not reach the database. `rolled_back`: the database
 * refused the statement and changed nothing. `unknown`: the database may have executed the statement, or may execute it
 * later, because the connection was lost or the commit did not wait for its standby.
 */
export type StatementOutcome = "not_sent" | "rolled_back" | "unknown";

export class StatementError extends BatonError {
  readonly outcome: StatementOutcome;
  /** The SQLSTATE of the database, or null if the error does not come from the database. */
  readonly sqlState: string | null;

  constructor(
    message: string,
    { outcome, sqlState, code, cause }: {
      readonly outcome: StatementOutcome;
      readonly sqlState: string | null;
      readonly code?: ErrorCode;
      readonly cause?: unknown;
    },
  ) {
    super(code ?? codeOf(outcome, sqlState), message, { cause });
    this.name = "StatementError";
    this.outcome = outcome;
    this.sqlState = sqlState;
  }

  /** True if the same statement may succeed later without a change of the configuration. */
  get isTemporary(): boolean {
    return this.outcome === "not_sent"
      ? this.code === "UNREACHABLE"
      : this.outcome === "rolled_back" && isTemporary(this.sqlState);
  }
}

/**
 * Returns true if the same statement may succeed later: after a serialization failure, a deadlock, a time limit, a lack
 * of resources, or a primary that became a standby. A full disk is not temporary.
 */
function isTemporary(sqlState: string | null): boolean {
  return sqlState !== null && /^(40001|40P01|55P03|57014|25006|53(?!100)...)$/.test(sqlState);
}

function codeOf(outcome: StatementOutcome, sqlState: string | null): ErrorCode {
  if (outcome === "unknown") return "OUTCOME_UNKNOWN";
  if (outcome === "not_sent" && sqlState === null) return "UNREACHABLE";
  if (sqlState === "53100") return "STORE_FULL"; // disk_full
  if (isTemporary(sqlState)) return "LOCK_BUSY";
  if (sqlState !== null && /^(28|42501)/.test(sqlState)) return "REFUSED"; // authorization
  if (sqlState !== null && /^(22021|22P05|26000|42P05|3D000|3F000|42P01|42883|42703)$/.test(sqlState)) return "CONFIG";
  return "IO";
}

/**
 * Returns true if the server may accept a connection later that it has refused with this SQLSTATE: the server is
 * starting or stopping, or has no free connection.
 */
export function isTemporaryConnectRefusal(sqlState: string): boolean {
  return /^(57P0[123]|08|53)/.test(sqlState);
}

/** Describes an error of the database for a message. `name` is the statement's name, or empty. */
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

/** Returns advice for the database's operator, or null if the database's own message is enough. */
function hintOf(sqlState: string, error: unknown, { user, schema, database }: DatabaseAddress): string | null {
  switch (sqlState) {
    case "42501":
      // The routine identifies the error, because its text is translated.
      if ((error as pg.DatabaseError).routine === "check_enable_rls") {
        return "a policy hides rows of the table; " +
          `disable it (ALTER TABLE … DISABLE ROW LEVEL SECURITY), or give the role "${user}" BYPASSRLS`;
      }
      return `the role "${user}" needs USAGE on the schema "${schema}", ` +
        "and SELECT, INSERT, UPDATE and DELETE on its tables; " +
        "for --migrate it must own the tables, or be allowed to create the schema";
    case "42P01":
    case "42703":
    case "42883":
    case "3F000":
      return `the schema "${schema}" does not have it: start once with --migrate, as a role that may create it`;
    case "26000":
    case "42P05":
      return "another program's prepared statements are in use, as behind a pooler in transaction mode; " +
        "connect to PostgreSQL itself";
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
      return "the database has no free connection: " +
        `see max_connections, and CONNECTION LIMIT of "${user}" and of "${database}"`;
    default:
      return null;
  }
}

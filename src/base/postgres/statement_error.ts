/** The outcome of a statement that has no result: whether the database may have changed, and the error for the user. */
import { BatonError, type ErrorCode } from "../errors.ts";

/**
 * `not_sent`: the statement did not reach the database. `rolled_back`: the database refused it and changed nothing.
 * `unknown`: the connection was lost, or the database committed it without the standby that it should wait for: it may
 * have been executed, or may be executed later.
 */
export type StatementOutcome = "not_sent" | "rolled_back" | "unknown";

export class StatementError extends BatonError {
  readonly outcome: StatementOutcome;
  /** The SQLSTATE of the database; null: the error does not come from the database. */
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

  /** Whether the same statement may succeed later without a change of the configuration. */
  get isTemporary(): boolean {
    return this.outcome === "not_sent"
      ? this.code === "UNREACHABLE"
      : this.outcome === "rolled_back" && isTemporary(this.sqlState);
  }
}

/**
 * Serialization failure, deadlock, lock timeout, cancelled by a time limit, lack of resources, and a primary that
 * became a standby. A full disk stays full until an operator makes room.
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
 * Whether a connection that was refused with this SQLSTATE may be accepted later: the server starts, stops, or has no
 * free slot.
 */
export function mayConnectLater(sqlState: string): boolean {
  return /^(57P0[123]|08|53)/.test(sqlState);
}

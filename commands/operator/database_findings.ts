/** Findings of `baton doctor` about the database of message stores or topics. */
import type { DiagnosisFinding } from "../../src/coordination/admin/diagnose.ts";
import { BatonError } from "../../src/errors.ts";
import { judgeDatabase, readDatabaseFacts } from "../../src/postgres/database_checks.ts";
import { requireSharedStore } from "../../src/postgres/database_schema.ts";
import { connectToPrimary } from "../../src/postgres/primary_connection.ts";
import type { DatabaseAddress } from "../../src/postgres/database_address.ts";
import { systemClock } from "../../src/support/clock.ts";
import { formatDuration } from "../../src/support/duration.ts";

/** A lease ends on the clock of the database, and the clocks of machines show when a message is due. Milliseconds. */
const clockDifferenceMsMax = 2000;

export interface CheckedDatabase {
  readonly address: DatabaseAddress;
  /** A database whose commits do not wait for a standby is a problem. */
  readonly requiresSync: boolean;
}

/** `where`: the URL without secrets. */
export async function databaseFindings(
  { address, requiresSync }: CheckedDatabase,
  where: string,
): Promise<DiagnosisFinding[]> {
  let connection: Awaited<ReturnType<typeof connectToPrimary>>;
  try {
    connection = await connectToPrimary(address, { clock: systemClock(), name: "doctor" });
  } catch (error) {
    return [problem(where, error)];
  }
  try {
    const startMs = Date.now();
    const facts = await readDatabaseFacts(connection);
    const endMs = Date.now();
    const findings = judgeDatabase(facts, { requiresSync }).map(({ severity, sentence }): DiagnosisFinding => ({
      kind: severity === "refused" ? "problem" : "warning",
      where,
      what: sentence,
    }));
    const aheadMs = facts.nowMs < startMs ? facts.nowMs - startMs : Math.max(0, facts.nowMs - endMs);
    if (Math.abs(aheadMs) > clockDifferenceMsMax) {
      const way = aheadMs > 0 ? "ahead of" : "behind";
      const what = `the clock of the database is ${formatDuration(Math.abs(aheadMs))} ${way} the clock of this machine`;
      findings.push({ kind: "warning", where, what });
    }
    await requireSharedStore(connection, address).catch((error) => findings.push(problem(where, error)));
    return findings;
  } catch (error) {
    return [problem(where, error)];
  } finally {
    connection.close();
  }
}

function problem(where: string, error: unknown): DiagnosisFinding {
  if (!(error instanceof BatonError)) throw error;
  return { kind: "problem", where, what: error.message };
}

/** Finds the problems of a database for `baton doctor`. */
import { type Finding, makeFinding } from "../../src/base/rows/finding.ts";
import { BatonError } from "../../src/base/errors.ts";
import { judgeDatabaseSafety, readDatabaseSafetyFacts } from "../../src/base/postgres/database_checks.ts";
import { requireSharedStore } from "../../src/base/postgres/database_schema.ts";
import { connectToPrimary, type PrimaryConnection } from "../../src/base/postgres/primary_connection.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { formatDuration } from "../../src/base/support/duration.ts";
import type { CheckedDatabase } from "../product.ts";

/**
 * The largest difference of the clocks without a warning, in milliseconds. The clock of the database ends leases, but
 * the clock of each machine decides when a message is due.
 */
const clockDifferenceMsMax = 2000;

/** Connects to a database and returns its problems. `inspect` is the check that the products provide. */
export async function findDatabaseProblems(
  database: CheckedDatabase,
  inspect: (connection: PrimaryConnection) => Promise<readonly Finding[]>,
): Promise<Finding[]> {
  const { where, address, requiresSync } = database;
  let connection: Awaited<ReturnType<typeof connectToPrimary>>;
  try {
    connection = await connectToPrimary(address, { clock: systemClock(), name: "doctor" });
  } catch (error) {
    return [problem(where, error)];
  }
  try {
    const startMs = Date.now();
    const facts = await readDatabaseSafetyFacts(connection);
    const endMs = Date.now();
    const findings = judgeDatabaseSafety(facts, { requiresSync }).map(({ severity, sentence }) =>
      makeFinding(severity === "refused" ? "database-unsafe" : "database-setting", {
        where,
        what: sentence,
        action: "change it in the database",
      })
    );
    const aheadMs = facts.nowMs < startMs ? facts.nowMs - startMs : Math.max(0, facts.nowMs - endMs);
    if (Math.abs(aheadMs) > clockDifferenceMsMax) {
      const way = aheadMs > 0 ? "ahead of" : "behind";
      const what = `the clock of the database is ${formatDuration(Math.abs(aheadMs))} ${way} the clock of this machine`;
      findings.push(makeFinding("database-clock", { where, what, action: "synchronize both clocks with NTP" }));
    }
    await requireSharedStore(connection, address).catch((error) => findings.push(problem(where, error)));
    findings.push(...await inspect(connection));
    return findings;
  } catch (error) {
    return [problem(where, error)];
  } finally {
    connection.close();
  }
}

function problem(where: string, error: unknown): Finding {
  if (!(error instanceof BatonError)) throw error;
  return makeFinding("database-unreadable", { where, what: error.message, action: "check its address and its state" });
}

/** Findings of `baton doctor` about the database of message stores or topics. */
import type { DiagnosisFinding } from "../../src/coordination/admin/diagnose.ts";
import { BatonError } from "../../src/base/errors.ts";
import { judgeDatabase, readDatabaseFacts } from "../../src/base/postgres/database_checks.ts";
import { inSchema, requireSharedStore } from "../../src/base/postgres/database_schema.ts";
import { suspectTopics } from "../../src/pubsub/store/postgres/postgres_tables.ts";
import {
  connectToPrimary,
  type PostgresRow,
  type PrimaryConnection,
} from "../../src/base/postgres/primary_connection.ts";
import { StatementError } from "../../src/base/postgres/statement_error.ts";
import type { DatabaseAddress } from "../../src/base/postgres/database_address.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { formatDuration } from "../../src/base/support/duration.ts";

/** A lease ends on the clock of the database, and the clocks of machines show when a message is due. Milliseconds. */
const clockDifferenceMsMax = 2000;

/** Losses that are named. */
const lossDays = 7;
const lossesMax = 20;

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
    findings.push(...await lossFindings(connection, address, where));
    return findings;
  } catch (error) {
    return [problem(where, error)];
  } finally {
    connection.close();
  }
}

/** Topics of the database whose messages were lost, or may have been, in the last days, and those that are not open because of that. */
async function lossFindings(
  connection: PrimaryConnection,
  address: DatabaseAddress,
  where: string,
): Promise<DiagnosisFinding[]> {
  const read = async (name: string, text: string) => {
    try {
      return await connection.run({ name, text: inSchema(text, address.schema) }, []);
    } catch (error) {
      // The tables of topics are not in this database, or not readable for this role.
      if (error instanceof StatementError) return [];
      throw error;
    }
  };
  const suspects = await read(
    "doctor_suspects",
    `SELECT name, count(*) OVER () AS total FROM SCHEMA.topic WHERE ${suspectTopics} ORDER BY name LIMIT ${lossesMax}`,
  );
  const losses = await read(
    "doctor_losses",
    `SELECT t.name, l.certain, l.last, to_char(l.at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS at FROM SCHEMA.topic_loss l
    JOIN SCHEMA.topic t ON t.id = l.topic WHERE l.at > clock_timestamp() - interval '${lossDays} days' ORDER BY l.at DESC LIMIT ${lossesMax}`,
  );
  const topic = ({ name }: PostgresRow) => JSON.stringify(String(name));
  const findings: DiagnosisFinding[] = losses.map((row) => {
    const loss = row["certain"] === true ? "has lost" : "may have lost";
    const what = `topic ${topic(row)} ${loss} messages after message ${
      row["last"]
    }, in a fail-over of the database found at ${row["at"]}`;
    return { kind: "warning", where, what };
  });
  const [suspect] = suspects;
  if (suspect !== undefined) {
    const more = Number(suspect["total"]) - suspects.length;
    const names = suspects.map(topic).join(", ") + (more > 0 ? ` and ${more} more` : "");
    const what = "topics that may have lost messages in a fail-over of the database, and were not opened since: " +
      `${names}; with --on-loss stop they are not served until: baton pubsub server restore --store URL --accept-loss`;
    findings.push({ kind: "warning", where, what });
  }
  return findings;
}

function problem(where: string, error: unknown): DiagnosisFinding {
  if (!(error instanceof BatonError)) throw error;
  return { kind: "problem", where, what: error.message };
}

/** The checks of `baton doctor` for topics: the database that stores them, and messages that it has lost. */
import { type Setting, type SettingTable } from "../../src/base/config/setting.ts";
import { insertSchemaName } from "../../src/base/postgres/database_schema.ts";
import type { PostgresRow, PrimaryConnection } from "../../src/base/postgres/primary_connection.ts";
import { StatementError } from "../../src/base/postgres/statement_error.ts";
import { type Finding, makeFinding } from "../../src/base/rows/finding.ts";
import { pubsubStoreSettings } from "../../src/pubsub/settings/pubsub_settings.ts";
import { topicsWithPossibleLossSql } from "../../src/pubsub/store/postgres/postgres_tables.ts";
import { type CheckedDatabase, defineDoctor } from "../product.ts";
import { readTopicStoreLocation } from "./topic_store_location.ts";

/** The report names losses of the last `lossDays` days, and at most `lossesMax` of them. */
const lossDays = 7;
const lossesMax = 20;

/** Returns the setting without its flag, so that the value comes only from a variable or a file. */
function withoutFlag<T>({ flag: _, ...setting }: Setting<T>): Setting<T> {
  return setting;
}

const settings = {
  pubsubStore: withoutFlag(pubsubStoreSettings.pubsubStore),
  pubsubRequireSync: withoutFlag(pubsubStoreSettings.pubsubRequireSync),
} satisfies SettingTable;

export const pubsubDoctor = defineDoctor({
  settings,
  databases(values, sources) {
    const { pubsubStore } = values;
    if (pubsubStore === undefined || sources.flags.has("retryStore")) return [];
    const unused = { pubsubNoBalance: false, pubsubDataDir: undefined, pubsubMigrate: false };
    const location = readTopicStoreLocation({ ...values, ...unused, pubsubOnLoss: "continue" }, sources);
    return location?.database ? [{ where: location.where, ...location.database }] : [];
  },
  inspectDatabase: lossFindings,
});

/**
 * Finds topics that have lost, or may have lost, messages in the last days, and topics that are closed because of it.
 */
async function lossFindings(
  connection: PrimaryConnection,
  { address, where }: CheckedDatabase,
): Promise<Finding[]> {
  const read = async (name: string, text: string) => {
    try {
      return await connection.run({ name, text: insertSchemaName(text, address.schema) }, []);
    } catch (error) {
      // This database has no tables of topics, or this role may not read them.
      if (error instanceof StatementError) return [];
      throw error;
    }
  };
  const suspects = await read(
    "doctor_suspects",
    "SELECT name, count(*) OVER () AS total FROM SCHEMA.topic " +
      `WHERE ${topicsWithPossibleLossSql} ORDER BY name LIMIT ${lossesMax}`,
  );
  const losses = await read(
    "doctor_losses",
    `SELECT t.name, l.certain, l.last, to_char(l.at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS at FROM SCHEMA.topic_loss l
    JOIN SCHEMA.topic t ON t.id = l.topic WHERE l.at > clock_timestamp() - interval '${lossDays} days'
    ORDER BY l.at DESC LIMIT ${lossesMax}`,
  );
  const topic = ({ name }: PostgresRow) => JSON.stringify(String(name));
  const findings: Finding[] = losses.map((row) => {
    const loss = row["certain"] === true ? "has lost" : "may have lost";
    const what = `topic ${topic(row)} ${loss} messages after message ${
      row["last"]
    }, in a fail-over of the database found at ${row["at"]}`;
    return makeFinding("topic-losses", { where, what, action: "check what its subscribers missed" });
  });
  const [suspect] = suspects;
  if (suspect !== undefined) {
    const more = Number(suspect["total"]) - suspects.length;
    const names = suspects.map(topic).join(", ") + (more > 0 ? ` and ${more} more` : "");
    const what = "topics that may have lost messages in a fail-over of the database, and were not opened since: " +
      `${names}; with --on-loss stop they are not served`;
    const action = "baton pubsub server restore --store URL --accept-loss";
    findings.push(makeFinding("topic-losses", { where, what, action }));
  }
  return findings;
}

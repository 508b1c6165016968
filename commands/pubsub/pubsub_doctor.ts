/** The checks of `baton doctor` for topics: their subscribers, their database, and messages that it has lost. */
import type { SettingTable } from "../../src/base/config/setting.ts";
import { insertSchemaName } from "../../src/base/postgres/database_schema.ts";
import type { PostgresRow, PrimaryConnection } from "../../src/base/postgres/primary_connection.ts";
import { StatementError } from "../../src/base/postgres/statement_error.ts";
import { type Finding, makeFinding } from "../../src/base/rows/finding.ts";
import { judgeRows } from "../../src/base/rows/row_findings.ts";
import type { TopicDetailsRow } from "../../src/base/rows/topic_row.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { BatonError } from "../../src/base/errors.ts";
import type { ZeroMqSocketOptions } from "../../src/protocols/zeromq/socket_options.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { requestTopicAction } from "../../src/pubsub/admin/manage_topic.ts";
import { readServerOverview, type ServerOverview } from "../../src/pubsub/admin/server_overview.ts";
import { PubsubPath } from "../../src/pubsub/ownership/pubsub_path.ts";
import { pubsubKeySettings, pubsubStoreSettings } from "../../src/pubsub/settings/pubsub_settings.ts";
import type { TopicDetails } from "../../src/pubsub/store/operations/topic_details.ts";
import { topicsWithPossibleLossSql } from "../../src/pubsub/store/postgres/postgres_tables.ts";
import { makeTopicDetailsRow } from "../../src/pubsub/view/overview_rows.ts";
import { type CheckedDatabase, defineDoctor, withoutFlag } from "../product.ts";
import { readPubsubServiceSecurity } from "./service_security.ts";
import { readTopicStoreLocation } from "./topic_store_location.ts";

/** The report names losses of the last `lossDays` days, and at most `lossesMax` of them. */
const lossDays = 7;
const lossesMax = 20;
/** How many topics of each server are checked, and how long one answer may take, in milliseconds. */
const topicsMax = 100;
const topicMsMax = 2000;

const settings = {
  pubsubStore: withoutFlag(pubsubStoreSettings.pubsubStore),
  pubsubKey: withoutFlag(pubsubKeySettings.pubsubKey),
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
  inspection(names, { root, pubsubKey }) {
    if (names.length > 0) return () => Promise.resolve({ counts: {}, findings: [] });
    const socket = readPubsubServiceSecurity({ pubsubKey })?.internalDialOptions;
    return async (zk) => {
      const path = new PubsubPath(root);
      const problems: string[] = [];
      const servers = await zk.exists(path.base) === null ? [] : await readServerOverview(zk, path, problems);
      const connected = servers.filter(({ endpoint }) => endpoint !== null);
      const found = await Promise.all(connected.map((server) => topicFindings(zk, { path, server, socket })));
      const later = problems.map((what) =>
        makeFinding("topics-unreadable", { where: "servers", what, action: "install the version of the servers" })
      );
      return { counts: {}, findings: [...found.flat(), ...later] };
    };
  },
});

interface CheckedServer {
  readonly path: PubsubPath;
  readonly server: ServerOverview;
  readonly socket: ZeroMqSocketOptions | undefined;
}

/** Asks a server for its first topics, one after the other. The first failure ends the check of this server. */
async function topicFindings(zk: ZooKeeper, { path, server, socket }: CheckedServer): Promise<Finding[]> {
  const topicDetails: TopicDetailsRow[] = [];
  const unreadable: Finding[] = [];
  for (const { topic } of server.topics.slice(0, topicsMax)) {
    try {
      const options = { clock: systemClock(), withinMs: topicMsMax, socket };
      const { owner, value } = await requestTopicAction(zk, path, { topic, action: "show" }, options);
      topicDetails.push(makeTopicDetailsRow(topic, owner, value as TopicDetails));
    } catch (thrown) {
      if (!(thrown instanceof BatonError)) throw thrown;
      if (thrown.code === "NOT_FOUND") continue; // it was deleted meanwhile
      const where = `server ${JSON.stringify(server.id)}`;
      const action = "check the server and its log, and pubsub.key in the configuration";
      unreadable.push(makeFinding("topics-unreadable", { where, what: thrown.message, action }));
      break;
    }
  }
  return [...judgeRows({ topicDetails }, Date.now()), ...unreadable];
}

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

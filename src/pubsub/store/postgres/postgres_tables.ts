/**
 * The PostgreSQL tables of topics that several servers share. Every change of a topic raises `revision` in its row: a
 * statement that was sent earlier then has no effect. A topic's owner assigns all numbers inside the topic; there are
 * no sequences, foreign keys or triggers.
 */

/**
 * The states of a topic's row, stored in its column `place`. The values are the same as in SQLite's
 * `sqliteTopicStates`.
 */
export const postgresTopicStates = { served: 0, staged: 1, dropped: 2, arriving: 3, setAside: 4 } as const;

/** SQL for the timeline of the cluster, which increases with each promotion of a standby. */
export const currentTimelineSql = "('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int";
/**
 * SQL that tells whether a commit waits for a standby, and SQL for the columns `timeline` and `synchronous` that every
 * change of a topic's row writes. A standby that has a commit also has all commits before it.
 */
export const isCommitSynchronousSql = `(current_setting('synchronous_standby_names') <> ''
  AND current_setting('synchronous_commit') IN ('on', 'remote_apply'))`;
export const setTimelineColumnsSql = `timeline = ${currentTimelineSql}, synchronous = ${isCommitSynchronousSql}`;
/** SQL for the topics that were not opened since a failover that may have lost some of their commits. */
export const topicsWithPossibleLossSql =
  `place = ${postgresTopicStates.served} AND timeline <> ${currentTimelineSql} AND NOT synchronous`;

/** Settings that remove deleted rows soon. Otherwise a table with many changes would become slow to read. */
const vacuumed =
  "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0";

/** The statements for `migrateDatabase`. The fill factors leave room for changes of a row in the same page. */
export const postgresTopicTables: readonly string[] = [
  `CREATE TABLE IF NOT EXISTS SCHEMA.topic (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name bytea NOT NULL,
    place smallint NOT NULL, incarnation text NOT NULL, base_offset bigint NOT NULL, epoch bigint NOT NULL,
    owner text NOT NULL, revision bigint NOT NULL, sealed_for text, sender text, last bigint NOT NULL,
    gone bigint NOT NULL, stored bigint NOT NULL, bytes bigint NOT NULL, clients bigint NOT NULL,
    registration bigint NOT NULL, numbers bigint NOT NULL, timeline int NOT NULL,
    synchronous bool NOT NULL) WITH (fillfactor = 50)`,
  `CREATE UNIQUE INDEX IF NOT EXISTS topic_name ON SCHEMA.topic (name, place)
    WHERE place < ${postgresTopicStates.dropped}`,
  `CREATE TABLE IF NOT EXISTS SCHEMA.topic_message (topic bigint, first bigint, last bigint NOT NULL,
    previous bigint NOT NULL, content_sum bigint NOT NULL, sum bigint NOT NULL, records bytea NOT NULL,
    PRIMARY KEY (topic, first)) WITH (${vacuumed})`,
  "ALTER TABLE SCHEMA.topic_message ALTER COLUMN records SET STORAGE EXTERNAL",
  `CREATE TABLE IF NOT EXISTS SCHEMA.topic_client (topic bigint, id bigint, name bytea NOT NULL,
    session bigint NOT NULL, key bytea NOT NULL, op bigint NOT NULL, op_session bigint NOT NULL,
    forgotten_session bigint NOT NULL, position bigint, registration bigint NOT NULL, PRIMARY KEY (topic, id))
    WITH (fillfactor = 70)`,
  // Not unique: one statement may delete a client and insert another one with its name.
  "CREATE INDEX IF NOT EXISTS topic_client_name ON SCHEMA.topic_client (topic, name)",
  `CREATE TABLE IF NOT EXISTS SCHEMA.topic_window (topic bigint, client bigint, session bigint, key bytea NOT NULL,
    first_unacked bigint NOT NULL, PRIMARY KEY (topic, client, session)) WITH (fillfactor = 70)`,
  `CREATE TABLE IF NOT EXISTS SCHEMA.topic_resolved (topic bigint, client bigint, session bigint, id bigint,
    first_unacked bigint NOT NULL, sum bigint NOT NULL, entries bytea NOT NULL,
    PRIMARY KEY (topic, client, session, id)) WITH (${vacuumed})`,
  "ALTER TABLE SCHEMA.topic_resolved ALTER COLUMN entries SET STORAGE EXTERNAL",
  `CREATE TABLE IF NOT EXISTS SCHEMA.topic_msg_id (topic bigint, client bigint, id bigint, key bytea NOT NULL,
    message bigint NOT NULL, fingerprint bigint NOT NULL, PRIMARY KEY (topic, client, id))`,
  `CREATE TABLE IF NOT EXISTS SCHEMA.topic_dropped (name bytea PRIMARY KEY, incarnation text NOT NULL,
    epoch bigint NOT NULL)`,
  // Messages from after `last` to `last_lost` (null: unknown) are missing (`certain`), or may be.
  `CREATE TABLE IF NOT EXISTS SCHEMA.topic_loss (topic bigint, timeline int, at timestamptz NOT NULL,
    certain bool NOT NULL, last bigint NOT NULL, last_lost bigint, base_offset bigint NOT NULL,
    last_client bigint NOT NULL, PRIMARY KEY (topic, timeline))`,
  `CREATE TABLE IF NOT EXISTS SCHEMA.topic_mark (server text PRIMARY KEY, generation bigint NOT NULL,
    timeline int NOT NULL, synchronous bool NOT NULL)`,
];

/** The SQL that records that a failover of the database has lost messages of topics. */
import { countRowsSql, requireChangedRowsSql } from "../../../base/postgres/required_rows.ts";
import { messageIdsSkippedAfterLoss } from "../decisions/decide_read.ts";
import { topicLossesKept } from "../decisions/topic_losses.ts";
import { currentTimelineSql, setTimelineColumnsSql } from "./postgres_tables.ts";

/**
 * SQL for the number of IDs that a topic skips after a loss. If a later failover undoes the skip, the next skip is
 * larger, so that no ID is used twice.
 */
export const idsSkippedAfterLossSql = `${messageIdsSkippedAfterLoss} * GREATEST(1, ${currentTimelineSql} - timeline)`;

const afterLostIds = "base_offset = o.base, last = o.base + 1";
const isBehindLoss = "c.topic = t.id AND c.position >= t.before";
const isOldLoss = `l.topic = t.id AND l.timeline <> t.timeline AND l.timeline IN (
  SELECT timeline FROM SCHEMA.topic_loss WHERE topic = t.id ORDER BY at DESC OFFSET ${topicLossesKept - 1})`;

/**
 * Returns the SQL that records a loss for the topics that fulfill `condition`. It moves the ends of these topics, and
 * subscribers at the ends, past all lost IDs. `lastLost` is the last lost message, or NULL. The SQL can be executed
 * again if the reply is lost.
 */
export function recordTopicLossSql(
  condition: string,
  { certain, lastLost }: Readonly<Record<"certain" | "lastLost", string>>,
): string {
  return `WITH o AS (SELECT id, last AS before, last + ${idsSkippedAfterLossSql} AS base FROM SCHEMA.topic
      WHERE ${condition} FOR UPDATE),
    t AS (UPDATE SCHEMA.topic t SET revision = revision + 1, ${setTimelineColumnsSql}, ${afterLostIds},
      registration = o.base FROM o WHERE t.id = o.id
      RETURNING t.id, t.name, t.epoch, t.revision, t.timeline, t.last, t.base_offset, t.numbers, o.before),
    c AS (UPDATE SCHEMA.topic_client c SET position = t.last FROM t WHERE ${isBehindLoss} RETURNING 1),
    d AS (DELETE FROM SCHEMA.topic_loss l USING t WHERE ${isOldLoss} RETURNING 1),
    l AS (INSERT INTO SCHEMA.topic_loss (topic, timeline, at, certain, last, last_lost, base_offset, last_client)
      SELECT id, timeline, clock_timestamp(), ${certain}, before, ${lastLost}, base_offset, numbers FROM t
      ON CONFLICT (topic, timeline) DO UPDATE SET at = excluded.at, certain = topic_loss.certain OR excluded.certain,
        last = LEAST(topic_loss.last, excluded.last), base_offset = excluded.base_offset,
        last_lost = CASE WHEN topic_loss.last_lost = excluded.last_lost THEN excluded.last_lost END,
        last_client = excluded.last_client RETURNING topic, topic_loss.last AS before)`;
}

/**
 * The condition that `recordTopicLossSql` has changed all rows that it must change, for use in the query that follows.
 */
export const isTopicLossRecordedSql = [
  requireChangedRowsSql("topic", countRowsSql("t"), countRowsSql("o")),
  requireChangedRowsSql(
    "topic_client",
    countRowsSql("c"),
    countRowsSql(`SCHEMA.topic_client c, t WHERE ${isBehindLoss}`),
  ),
  requireChangedRowsSql("topic_loss", countRowsSql("d"), countRowsSql(`SCHEMA.topic_loss l, t WHERE ${isOldLoss}`)),
  requireChangedRowsSql("topic_loss", countRowsSql("l"), countRowsSql("t")),
].join(" AND ");

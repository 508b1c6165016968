/** Computes from the answers of a topic's server how many messages arrive, and how far subscribers are behind. Pure. */
import type { TopicDetailsRow } from "../../base/rows/topic_row.ts";

/** The answer of a topic's server. A rate is computed from two answers. */
export interface AnsweredTopicRow extends TopicDetailsRow {
  readonly at: string;
}

export interface TopicReading {
  readonly at: string;
  /** Messages put into the topic per second; null before the second answer. */
  readonly rate: number | null;
  /** How many messages the slowest subscriber has not acknowledged. */
  readonly behind: number;
  /** The name of that subscriber; null if there is none. */
  readonly slowest: string | null;
  readonly subscribers: number;
}

export function topicReadingFrom(before: AnsweredTopicRow | null, now: AnsweredTopicRow): TopicReading {
  return {
    at: now.at,
    rate: before === null ? null : rateBetween(before, now),
    behind: now.subscribers[0]?.pending ?? 0,
    slowest: now.subscribers[0]?.client ?? null,
    subscribers: now.subscriber_count,
  };
}

function rateBetween(before: AnsweredTopicRow, now: AnsweredTopicRow): number | null {
  const spentMs = Date.parse(now.at) - Date.parse(before.at);
  const added = Number(now.end) - Number(before.end);
  return spentMs <= 0 || added < 0 ? null : Math.round(10_000 * added / spentMs) / 10;
}

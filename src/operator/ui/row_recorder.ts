/**
 * Records totals of the rows over time, and what has just changed, in the memory of `baton ui`. Its size is bounded.
 * Owns no clock: its owner calls `sample` at intervals.
 */
import type { FollowedCoordinationRow, HolderRow } from "../../base/rows/object_row.ts";
import type { FindingChange } from "./finding_record.ts";
import { countText } from "./shown_text.ts";
import type { TopicReading } from "./topic_reading.ts";
import type { FollowedScheduleRow } from "../../base/rows/schedule_row.ts";

export const sampledTotals = [
  ...["held", "waiting", "handovers", "published", "behind"] as const,
  ...["pending", "dead", "delivered", "responseMs"] as const,
] satisfies string[];
export type SampledTotal = (typeof sampledTotals)[number];

/** The totals at one time. A total is null if it could not be read. */
export type Totals = Readonly<Record<SampledTotal, number | null>>;

export interface TotalsSample {
  readonly atMs: number;
  readonly totals: Totals;
}

/** A time, and the messages per second and the largest backlog at that time. */
export type TopicPoint = readonly [atMs: number, rate: number | null, behind: number];

export interface ActivityEvent {
  readonly number: number;
  readonly atMs: number;
  readonly kind: "good" | "warn" | "bad" | "busy" | "idle";
  /** The name of the object; empty for a line about many objects. */
  readonly name: string;
  readonly what: string;
}

/** The answer to a page that draws the past hour. */
export interface RecordedHour {
  /** The start of the recording. */
  readonly sinceMs: number;
  /** The time of the answer, after which a page requests the rest. */
  readonly nowMs: number;
  readonly samples: readonly TotalsSample[];
  /** The points of each topic, one a minute. */
  readonly topics: Readonly<Record<string, readonly TopicPoint[]>>;
  /** The newest event is the last one. */
  readonly activity: readonly ActivityEvent[];
}

export const sampleEveryMs = 10_000;
export const samplesMax = 360;
export const activityMax = 200;
/** One hour of points, and how many topics have points. */
const topicPointsMax = 60;
const topicPointEveryMs = 60_000;
export const recordedTopicsMax = 200;
/** More changes of holders between two samples than this become one line. */
const singleHandoversMax = 20;

interface ObjectShare {
  readonly held: number;
  readonly waiting: number;
  readonly holder: string | null;
}

export class RowRecorder {
  readonly #sinceMs: number;
  readonly #samples: TotalsSample[] = [];
  readonly #activity: ActivityEvent[] = [];
  /** The share of each lock and election in the totals, and its first holder. */
  readonly #shares = new Map<string, ObjectShare>();
  readonly #lastRuns = new Map<string, string>();
  readonly #topics = new Map<string, TopicPoint[]>();
  #held = 0;
  #waiting = 0;
  #handovers = 0;
  #number = 0;

  constructor(nowMs: number) {
    this.#sinceMs = nowMs;
  }

  /**
   * Notes a changed lock or election; null if it is gone. The first reading of a session is no change.
   */
  noteObject(key: string, row: FollowedCoordinationRow | null, { nowMs, isNew }: NotedAt): void {
    const before = this.#shares.get(key);
    const holder = row?.first_holders[0] ?? null;
    const after = { held: row?.holders ?? 0, waiting: row?.waiters ?? 0, holder: holder?.id ?? null };
    this.#held += after.held - (before?.held ?? 0);
    this.#waiting += after.waiting - (before?.waiting ?? 0);
    if (row === null) this.#shares.delete(key);
    else this.#shares.set(key, after);
    if (isNew || holder === null || holder.id === (before?.holder ?? null)) return;
    this.#handovers++;
    if (this.#handovers > singleHandoversMax) return;
    const verb = row?.kind === "election" ? "leads" : "holds it";
    this.#add({ atMs: nowMs, kind: "busy", name: row?.name ?? key, what: `${whoOf(holder)} ${verb}` });
  }

  noteSchedule(key: string, row: FollowedScheduleRow | null, { nowMs, isNew }: NotedAt): void {
    const last = row?.runs.at(-1);
    if (row === null || last === undefined) return void this.#lastRuns.delete(key);
    const id = `${last.tick} ${last.attempt} ${last.result}`;
    const isSame = this.#lastRuns.get(key) === id;
    this.#lastRuns.set(key, id);
    if (isSame || isNew) return;
    const { result, host } = last;
    const kind = result === "done" ? "good" : result === "skipped" ? "idle" : "bad";
    this.#add({ atMs: nowMs, kind, name: row.name, what: host === "" ? result : `${result} on ${host}` });
  }

  /** Notes a finding that began or ended. The runs of a schedule have their own lines. */
  noteFinding({ finding: { id, severity, where, what }, row, isNew }: FindingChange, nowMs: number): void {
    if (id.startsWith("schedule-")) return;
    if (row === null) this.#add({ atMs: nowMs, kind: "good", name: where, what: `is over: ${what}` });
    else if (isNew && !row.isOlder) {
      this.#add({ atMs: nowMs, kind: severity === "problem" ? "bad" : "warn", name: where, what });
    }
  }

  noteTopic(topic: string, { rate, behind }: TopicReading, nowMs: number): void {
    const points = this.#topics.get(topic) ?? [];
    const [lastMs = 0] = points.at(-1) ?? [];
    if (nowMs - lastMs < topicPointEveryMs || (points.length === 0 && this.#topics.size >= recordedTopicsMax)) return;
    this.#topics.set(topic, [...points, [nowMs, rate, behind] as const].slice(-topicPointsMax));
  }

  /** Forgets the topics that are gone. */
  keepTopics(topics: ReadonlySet<string>): void {
    for (const topic of this.#topics.keys()) if (!topics.has(topic)) this.#topics.delete(topic);
  }

  /** Adds a sample of the totals. `polled` are the totals that are not counted here; null while nothing is known. */
  sample(nowMs: number, polled: Omit<Totals, "held" | "waiting" | "handovers"> | null): void {
    const handovers = this.#handovers;
    this.#handovers = 0;
    if (handovers > singleHandoversMax) {
      const more = handovers - singleHandoversMax;
      const what = `${countText(more)} more handovers in ${sampleEveryMs / 1000} s`;
      this.#add({ atMs: nowMs, kind: "busy", name: "", what });
    }
    if (polled === null) return;
    const counted = { held: this.#held, waiting: this.#waiting, handovers: handovers / (sampleEveryMs / 1000) };
    this.#samples.push({ atMs: nowMs, totals: { ...counted, ...polled } });
    while (this.#samples.length > samplesMax) this.#samples.shift();
  }

  /** Returns everything that was recorded after a time. */
  hourAfter(afterMs: number, nowMs: number): RecordedHour {
    return {
      sinceMs: this.#sinceMs,
      nowMs,
      samples: this.#samples.filter(({ atMs }) => atMs > afterMs),
      topics: Object.fromEntries(
        [...this.#topics].map(([topic, points]) => [topic, points.filter(([atMs]) => atMs > afterMs)]),
      ),
      activity: this.#activity.filter(({ atMs }) => atMs > afterMs),
    };
  }

  #add(event: Omit<ActivityEvent, "number">): void {
    this.#activity.push({ ...event, number: ++this.#number });
    while (this.#activity.length > activityMax) this.#activity.shift();
  }
}

export interface NotedAt {
  readonly nowMs: number;
  /** True while the session reads the objects for the first time. */
  readonly isNew: boolean;
}

const whoOf = ({ user, host }: HolderRow) => `${user}@${host}`;

/**
 * Returns one value for each of `count` intervals up to the newest one; null for an interval that was not recorded.
 */
export function pointsOverTime(
  samples: readonly { readonly atMs: number; readonly value: number | null }[],
  { nowMs, everyMs, count }: { readonly nowMs: number; readonly everyMs: number; readonly count: number },
): (number | null)[] {
  const points = new Array<number | null>(count).fill(null);
  for (const { atMs, value } of samples) {
    const index = count - 1 - Math.floor((nowMs - atMs) / everyMs);
    if (index < 0 || index >= count || value === null) continue;
    points[index] = Math.max(points[index] ?? 0, value);
  }
  return points;
}

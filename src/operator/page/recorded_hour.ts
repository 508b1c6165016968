/** Requests the recorded hour from `baton ui`, and then what is new in it. */
import { signal } from "@preact/signals";
import { activityMax, pointsOverTime, type RecordedHour, type SampledTotal, samplesMax } from "../ui/row_recorder.ts";
import { programNowMs, streamState } from "./page_state.ts";
import { requestJsonFromProgram } from "./read_stream.ts";

const readEveryMs = 5000;
/** The points of a chart: one a minute. */
const pointCount = 60;

/** The recorded hour; null until it is known. */
export const recordedHour = signal<RecordedHour | null>(null);

export function followRecordedHour(): void {
  const read = async () => {
    if (!document.hidden && streamState.peek() === "live") await readNew().catch(() => {});
    setTimeout(read, recordedHour.peek() === null ? 500 : readEveryMs);
  };
  void read();
}

async function readNew(): Promise<void> {
  const known = recordedHour.peek();
  const found = await requestJsonFromProgram<RecordedHour>(`/series?after=${known?.nowMs ?? 0}`);
  const isSame = known !== null && known.sinceMs === found.sinceMs;
  const before: Pick<RecordedHour, "samples" | "activity" | "topics"> = isSame
    ? known
    : { samples: [], activity: [], topics: {} };
  const topics = Object.entries(found.topics).map(([topic, points]) => {
    return [topic, [...before.topics[topic] ?? [], ...points].slice(-pointCount)] as const;
  });
  recordedHour.value = {
    ...found,
    samples: [...before.samples, ...found.samples].slice(-samplesMax),
    topics: Object.fromEntries(topics),
    activity: [...before.activity, ...found.activity].slice(-activityMax),
  };
}

export type HourPoints = readonly (number | null)[];

const hourPoints = (samples: Parameters<typeof pointsOverTime>[0]): HourPoints =>
  pointsOverTime(samples, { nowMs: programNowMs.peek(), everyMs: 3_600_000 / pointCount, count: pointCount });

/** Returns the values of one total over the past hour, one a minute; null where nothing was recorded. */
export function recordedPoints(name: SampledTotal): HourPoints {
  return hourPoints((recordedHour.value?.samples ?? []).map(({ atMs, totals }) => ({ atMs, value: totals[name] })));
}

/** Returns the rate or the backlog of a topic over the past hour. */
export function topicPoints(topic: string, what: "rate" | "behind"): HourPoints {
  const points = recordedHour.value?.topics[topic] ?? [];
  return hourPoints(points.map(([atMs, rate, behind]) => ({ atMs, value: what === "rate" ? rate : behind })));
}

/** Returns the newest value of a total; null if there is none. */
export function newestTotal(name: SampledTotal): number | null {
  return recordedHour.value?.samples.at(-1)?.totals[name] ?? null;
}

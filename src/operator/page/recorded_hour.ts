/** Requests the recorded hour from `baton ui`, and then what is new in it. */
import { signal } from "@preact/signals";
import { activityMax, type RecordedHour, sampledPoints, type SampledTotal, samplesMax } from "../ui/row_recorder.ts";
import { programNowMs, streamState } from "./page_state.ts";
import { requestJsonFromProgram } from "./read_stream.ts";

const readEveryMs = 5000;

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
  const afterMs = Math.max(known?.samples.at(-1)?.atMs ?? 0, known?.activity.at(-1)?.atMs ?? 0);
  const found = await requestJsonFromProgram<RecordedHour>(`/series?after=${afterMs}`);
  const isSame = known !== null && known.sinceMs === found.sinceMs;
  const before = isSame ? known : { samples: [], activity: [] };
  recordedHour.value = {
    ...found,
    samples: [...before.samples, ...found.samples].slice(-samplesMax),
    activity: [...before.activity, ...found.activity].slice(-activityMax),
  };
}

const hourMs = 3_600_000;
const pointCount = 60;

/** Returns the values of one total over the past hour, one a minute; null where nothing was recorded. */
export function recordedPoints(name: SampledTotal): readonly (number | null)[] {
  const minuteMs = hourMs / pointCount;
  return sampledPoints(recordedHour.value?.samples ?? [], name, {
    nowMs: programNowMs.peek(),
    everyMs: minuteMs,
    count: pointCount,
  });
}

/** Returns the newest value of a total; null if there is none. */
export function newestTotal(name: SampledTotal): number | null {
  return recordedHour.value?.samples.at(-1)?.totals[name] ?? null;
}

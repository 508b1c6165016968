import { describe, expect, test } from "bun:test";
import {
  activityMax,
  pointsOverTime,
  recordedTopicsMax,
  RowRecorder,
  sampleEveryMs,
  samplesMax,
} from "../../../../src/operator/ui/row_recorder.ts";
import { topicReadingFrom } from "../../../../src/operator/ui/topic_reading.ts";
import { samplePage } from "../../../support/ui_sample_rows.ts";

const polled = { published: null, behind: null, pending: 3, dead: 0, delivered: 1.5, responseMs: 2 };
const { tables: { locks = {}, ticks = {} } } = samplePage(1_800_000_000_000);
const lock = Object.values(locks)[0] ?? null;
const schedule = Object.values(ticks)[0] ?? null;
const heldBy = (id: string) => lock === null ? null : { ...lock, first_holders: [{ ...lock.first_holders[0]!, id }] };

describe("totals", () => {
  test("count what is held and waited for, and forget what is gone", () => {
    const recorder = new RowRecorder(0);
    recorder.noteObject("lock a", lock, { nowMs: 1, isNew: true });
    recorder.sample(2, polled);
    recorder.noteObject("lock a", null, { nowMs: 3, isNew: false });
    recorder.sample(4, polled);
    expect(recorder.hourAfter(0, 1).samples.map(({ totals: { held, waiting, pending } }) => [held, waiting, pending]))
      .toEqual([[1, 3, 3], [0, 0, 3]]);
  });

  test("nothing is recorded while nothing is known, and a chart has a gap there", () => {
    const recorder = new RowRecorder(0);
    recorder.sample(10_000, polled);
    recorder.sample(20_000, null);
    recorder.sample(30_000, polled);
    const samples = (name: "pending" | "published") =>
      recorder.hourAfter(0, 1).samples.map(({ atMs, totals }) => ({ atMs, value: totals[name] }));
    expect(pointsOverTime(samples("pending"), { nowMs: 30_000, everyMs: 10_000, count: 4 })).toEqual([
      null,
      3,
      null,
      3,
    ]);
    expect(pointsOverTime(samples("published"), { nowMs: 30_000, everyMs: 10_000, count: 2 })).toEqual([null, null]);
  });

  test("an hour is kept, and a page gets only what it does not know", () => {
    const recorder = new RowRecorder(0);
    for (let at = 1; at <= samplesMax + 5; at++) recorder.sample(at * sampleEveryMs, polled);
    expect(recorder.hourAfter(0, 1).samples.length).toBe(samplesMax);
    expect(recorder.hourAfter((samplesMax + 3) * sampleEveryMs, 1).samples.length).toBe(2);
  });
});

describe("topics", () => {
  const reading = { at: "", rate: 5, behind: 7, slowest: "a", subscribers: 1 };
  const pointsOf = (recorder: RowRecorder) => recorder.hourAfter(0, 1).topics["a"]?.length;

  test("a topic has one point a minute and at most an hour of them, until it is gone", () => {
    const recorder = new RowRecorder(0);
    for (let second = 0; second < 7200; second += 10) recorder.noteTopic("a", reading, 1_000_000 + second * 1000);
    expect(pointsOf(recorder)).toBe(60);
    recorder.keepTopics(new Set(["b"]));
    expect(pointsOf(recorder)).toBeUndefined();
  });

  test("the number of topics with points is limited", () => {
    const recorder = new RowRecorder(0);
    for (let topic = 0; topic < 2 * recordedTopicsMax; topic++) recorder.noteTopic(`t${topic}`, reading, 1_000_000);
    expect(Object.keys(recorder.hourAfter(0, 1).topics).length).toBe(recordedTopicsMax);
  });

  test("a rate needs two answers of the same topic", () => {
    const answer = (at: string, end: string) => ({ at, end, subscribers: [], subscriber_count: 0 }) as never;
    const first = answer("2026-11-29T03:00:00Z", "100");
    expect(topicReadingFrom(null, first).rate).toBeNull();
    expect(topicReadingFrom(first, answer("2026-11-29T03:00:10Z", "150")).rate).toBe(5);
    expect(topicReadingFrom(first, answer("2026-11-29T03:00:10Z", "90")).rate).toBeNull(); // deleted and made again
  });
});

describe("activity", () => {
  test("the first reading is no change; a new holder and a new run are", () => {
    const recorder = new RowRecorder(0);
    recorder.noteObject("lock a", heldBy("one"), { nowMs: 1, isNew: true });
    recorder.noteSchedule("a", schedule === null ? null : { ...schedule, runs: schedule.runs.slice(0, -1) }, {
      nowMs: 1,
      isNew: true,
    });
    expect(recorder.hourAfter(0, 1).activity).toEqual([]);
    recorder.noteObject("lock a", heldBy("two"), { nowMs: 2, isNew: false });
    recorder.noteSchedule("a", schedule, { nowMs: 3, isNew: false });
    recorder.noteSchedule("a", schedule, { nowMs: 4, isNew: false });
    expect(recorder.hourAfter(0, 1).activity.map(({ kind, name, what }) => `${kind} ${name} ${what}`))
      .toEqual(["busy nightly-backup backup@db1 holds it", "bad invoice-export failed on web2"]);
  });

  test("many handovers become one line, and old events are dropped", () => {
    const recorder = new RowRecorder(0);
    for (let count = 0; count < 50; count++) {
      recorder.noteObject("lock a", heldBy(`holder${count}`), { nowMs: 1, isNew: false });
    }
    recorder.sample(2, polled);
    expect(recorder.hourAfter(0, 1).activity.at(-1)?.what).toBe("30 more handovers in 10 s");
    expect(recorder.hourAfter(0, 1).samples.at(-1)?.totals.handovers).toBe(5);
    for (let count = 0; count < 2 * activityMax; count++) {
      recorder.noteObject("lock a", heldBy(`later${count}`), { nowMs: 3, isNew: false });
      recorder.sample(3, polled);
    }
    expect(recorder.hourAfter(0, 1).activity.length).toBe(activityMax);
  });
});

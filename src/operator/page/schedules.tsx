/** Shows schedules as lanes over 24 hours, the worst first. */
import { computed } from "@preact/signals";
import type { JSX } from "preact";
import type { FollowedScheduleRow, RecordedRunRow } from "../../base/rows/schedule_row.ts";
import { ageText, countText, shownText } from "../ui/shown_text.ts";
import { usualRunMs } from "../ui/usual_time.ts";
import { type BlockKind, Lane, LaneAxis, type LaneBlock, LaneLegend, type LaneRange } from "./charts.tsx";
import { rowFilterText } from "./data_table.tsx";
import { Card, Facts, PageHead } from "./frame.tsx";
import { Mark, type MarkKind, StateMark } from "./marks.tsx";
import { pageTables, programNowMinuteMs } from "./page_state.ts";
import { AgeText, parseInstantMs, RelativeTimeText, RowLink } from "./row_parts.tsx";
import { tickScheduleState } from "./views.tsx";

const hourMs = 3_600_000;
const recentHours = 6;
/** How many lanes are drawn at first. */
export const lanesMax = 200;

export const dayRange = (nowMs: number): LaneRange => ({
  fromMs: nowMs - 18 * hourMs,
  nowMs,
  toMs: nowMs + 6 * hourMs,
});

export interface JudgedSchedule {
  readonly row: FollowedScheduleRow;
  readonly key: string;
  readonly kind: MarkKind;
  readonly text: string;
}

const kindOrder: readonly MarkKind[] = ["bad", "warn", "busy", "good", "idle"];

function judgeSchedule(key: string, row: FollowedScheduleRow, nowMs: number): JudgedSchedule {
  return { row, key, ...tickScheduleState(row, nowMs) };
}

/** All schedules with their states, the worst first, then by name. */
export const judgedSchedules = computed((): readonly JudgedSchedule[] => {
  const nowMs = programNowMinuteMs.value;
  const judged = pageTables.ticks.keys.value.flatMap((key) => {
    const row = pageTables.ticks.rows.get(key)?.value;
    return row === undefined ? [] : [judgeSchedule(key, row, nowMs)];
  });
  return judged.sort((a, b) =>
    kindOrder.indexOf(a.kind) - kindOrder.indexOf(b.kind) || (a.row.name < b.row.name ? -1 : 1)
  );
});

export interface RunTotals {
  readonly done: number;
  readonly failed: number;
  readonly lost: number;
  readonly missed: number;
  readonly skipped: number;
  readonly running: number;
}

/** The runs of the past 24 hours, as far as the servers keep them. */
export const dayRunTotals = computed((): RunTotals => {
  const totals = { done: 0, failed: 0, lost: 0, missed: 0, skipped: 0, running: 0 };
  const fromMs = programNowMinuteMs.value - 24 * hourMs;
  for (const { row: { runs, running } } of judgedSchedules.value) {
    if (running !== null) totals[running.lost ? "lost" : "running"]++;
    for (const { result, count, ended, until, tick } of runs) {
      if (parseInstantMs(ended ?? until ?? tick) < fromMs) continue;
      totals[result === "stopped" ? "failed" : result] += count;
    }
  }
  return totals;
});

function runTitle({ result, host, tick, exit_code, why }: RecordedRunRow): string {
  const end = exit_code === null || exit_code === 0 ? "" : `, exit ${exit_code}`;
  return `${tick ?? ""} ${result}${host === "" ? "" : ` on ${host}`}${end}${why === null ? "" : `: ${why}`}`;
}

/** Returns the runs of a schedule as blocks of a lane. */
export function laneBlocks(
  { runs, running }: Pick<FollowedScheduleRow, "runs" | "running">,
  nowMs: number,
): LaneBlock[] {
  const blocks: LaneBlock[] = runs.map((run) => {
    const fromMs = parseInstantMs(run.began ?? run.tick);
    const toMs = Math.max(fromMs, parseInstantMs(run.ended ?? run.until ?? run.tick));
    return { fromMs, toMs, kind: run.result, title: runTitle(run) };
  });
  if (running !== null) {
    const kind: BlockKind = running.lost ? "lost" : "running";
    const title = running.lost ? `lost on ${running.host}` : `runs on ${running.host}`;
    blocks.push({ fromMs: parseInstantMs(running.began), toMs: nowMs, kind, title });
  }
  return blocks;
}

/** The past hours of a schedule, as a small picture. */
export function RecentLane({ row }: { readonly row: FollowedScheduleRow }): JSX.Element {
  const nowMs = programNowMinuteMs.value;
  const range = { fromMs: nowMs - recentHours * hourMs, nowMs, toMs: nowMs };
  return <Lane range={range} blocks={laneBlocks(row, nowMs)} nextMs={[]} label={runCountsText(row)} />;
}

export function ScheduleLane({ row }: { readonly row: FollowedScheduleRow }): JSX.Element {
  const nowMs = programNowMinuteMs.value;
  const next = row.next === null ? [] : [parseInstantMs(row.next)];
  return <Lane range={dayRange(nowMs)} blocks={laneBlocks(row, nowMs)} nextMs={next} label={runCountsText(row)} />;
}

/** Describes a lane in words. */
function runCountsText({ runs, running }: FollowedScheduleRow): string {
  const counts = Map.groupBy(runs, ({ result }) => result);
  const words = [...counts].map(([result, all]) => `${all.reduce((sum, { count }) => sum + count, 0)} ${result}`);
  return `Recorded runs: ${words.join(", ") || "none"}${running === null ? "" : ", 1 running"}`;
}

/** A table of lanes. `isBrief`: without the schedules' texts, for the overview. */
export function ScheduleLanes({ schedules, isBrief }: {
  readonly schedules: readonly JudgedSchedule[];
  readonly isBrief: boolean;
}): JSX.Element {
  const range = dayRange(programNowMinuteMs.value);
  return (
    <table class="lanes">
      <caption class="unseen">Schedules, 18 hours back and 6 hours ahead, in UTC</caption>
      <thead>
        <tr>
          <th scope="col">Schedule</th>
          <th scope="col">
            <span class="unseen">Time line</span>
            <LaneAxis range={range} />
          </th>
          {!isBrief && <th scope="col">Last result</th>}
          <th scope="col" class="number">Next</th>
        </tr>
      </thead>
      <tbody>
        {schedules.map((judged) => <LaneRow key={judged.key} judged={judged} isBrief={isBrief} />)}
      </tbody>
    </table>
  );
}

function LaneRow({ judged: { row, key, kind, text }, isBrief }: {
  readonly judged: JudgedSchedule;
  readonly isBrief: boolean;
}): JSX.Element {
  const { name, schedule, time_zone, next } = row;
  return (
    <tr>
      <th scope="row">
        <span class="state">
          {isBrief && <Mark kind={kind} label={text} />}
          <RowLink table="ticks" id={key}>{shownText(name)}</RowLink>
        </span>
        {!isBrief && <span class="sub mono">{shownText(`${schedule} ${time_zone}`)}</span>}
      </th>
      <td class="line">
        <ScheduleLane row={row} />
      </td>
      {!isBrief && (
        <td class="result">
          <StateMark kind={kind} text={text} />
          <span class="sub">
            <LastRun row={row} />
          </span>
        </td>
      )}
      <td class="number">{next === null ? "none" : <RelativeTimeText at={next} />}</td>
    </tr>
  );
}

/** Says how long a run has taken or took, and how long it usually takes. */
function LastRun({ row: { running, runs } }: { readonly row: FollowedScheduleRow }): JSX.Element | null {
  const usualMs = usualRunMs(runs);
  const usual = usualMs === null ? "" : `usually ${ageText(usualMs)}`;
  if (running !== null) {
    return (
      <>
        for <AgeText since={running.began} />
        {usual === "" ? "" : `, ${usual}`}
      </>
    );
  }
  const last = runs.at(-1);
  if (last === undefined) return null;
  const at = last.ended ?? last.until ?? last.tick;
  return (
    <>
      {last.host === "" ? "" : `on ${shownText(last.host)}, `}
      {at === null ? "" : <RelativeTimeText at={at} />}
      {last.exit_code === null || last.exit_code === 0 ? "" : `, exit ${last.exit_code}`}
    </>
  );
}

const legendKinds: readonly BlockKind[] = ["done", "running", "failed", "lost", "missed", "skipped"];

export function SchedulesView(): JSX.Element {
  const wanted = rowFilterText.value.trim().toLowerCase();
  const all = judgedSchedules.value;
  const found = all.filter(({ row: { name, schedule, time_zone }, text }) =>
    [name, schedule, time_zone, text].some((one) => one.toLowerCase().includes(wanted))
  );
  const shown = found.slice(0, lanesMax);
  const { done, failed, lost, missed, skipped, running } = dayRunTotals.value;
  const bad = all.filter(({ kind }) => kind === "bad" || kind === "warn").length;
  return (
    <>
      <PageHead
        title="Schedules"
        text={all.length === 0 ? "No lock has ticks." : `${countText(bad)} of ${countText(all.length)} need a look.`}
      />
      {all.length > 0 && (
        <>
          <Facts
            facts={[
              ["Done, 24 h", countText(done)],
              ["Failed", <Total key="failed" value={failed} kind="bad" />],
              ["Lost", <Total key="lost" value={lost} kind="bad" />],
              ["Missed", <Total key="missed" value={missed} kind="bad" />],
              ["Skipped", countText(skipped)],
              ["Running", <Total key="running" value={running} kind="busy" />],
            ]}
          />
          <Card title="One lane for each schedule" more={<LaneLegend kinds={legendKinds} />}>
            <p class={wanted === "" ? "count unseen" : "count"}>
              {countText(found.length)} {found.length === 1 ? "row" : "rows"}
            </p>
            <ScheduleLanes schedules={shown} isBrief={false} />
            {found.length > shown.length && (
              <p class="cut-note">
                {countText(found.length - shown.length)} more are not shown. The filter finds them by name.
              </p>
            )}
          </Card>
        </>
      )}
    </>
  );
}

function Total({ value, kind }: { readonly value: number; readonly kind: MarkKind }): JSX.Element {
  return <span class={value === 0 ? "" : `state ${kind}`}>{countText(value)}</span>;
}

/** The overview: what is wrong, what runs, what has just changed, and the past hour in four tiles. */
import { useComputed } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import type { FollowedCoordinationRow, HolderRow } from "../../base/rows/object_row.ts";
import type { StoreRow } from "../../base/rows/store_row.ts";
import { countText, shownText, utcTimeText } from "../ui/shown_text.ts";
import { attentionByView, countOfSeverity } from "./attention.ts";
import { AttentionList } from "./attention_list.tsx";
import { Spark } from "./charts.tsx";
import { Card, PageHead } from "./frame.tsx";
import { Mark, type MarkKind, StateMark } from "./marks.tsx";
import { aboutProgram, pageTables, programNowMinuteMs } from "./page_state.ts";
import { newestTotal, recordedHour, recordedPoints } from "./recorded_hour.ts";
import { AgeText, HeldTime, parseInstantMs, participantText, RelativeTimeText, RowLink } from "./row_parts.tsx";
import { dayRunTotals, judgedSchedules, ScheduleLanes } from "./schedules.tsx";
import type { ViewName } from "./view_names.ts";

const hourMs = 3_600_000;
const overviewLanes = 9;
const jobsShown = 8;
const activityShown = 14;

export function Overview(): JSX.Element {
  return (
    <>
      <PageHead title={<Verdict />} text={<Fine />} />
      <div class="grid">
        <AttentionList />
        <Activity />
        <Tiles />
        <NextRuns />
        <RunningJobs />
        <ActionList />
      </div>
    </>
  );
}

/** Says in the title whether anything is wrong. */
function Verdict(): JSX.Element {
  const problems = countOfSeverity("problem");
  const warnings = countOfSeverity("warning");
  if (problems + warnings === 0) {
    return (
      <span class="verdict">
        <Mark kind="good" />
        All is well
      </span>
    );
  }
  return (
    <span class="verdict">
      {problems > 0 && <Mark kind="bad" />}
      {problems > 0 && <span>{countText(problems)} {problems === 1 ? "problem" : "problems"}</span>}
      {warnings > 0 && <Mark kind="warn" />}
      {warnings > 0 && <span>{countText(warnings)} {warnings === 1 ? "warning" : "warnings"}</span>}
    </span>
  );
}

/** Says what is in use and fine. */
function Fine(): JSX.Element {
  const of = (count: number, one: string, many: string) =>
    count === 0 ? [] : [`${countText(count)} ${count === 1 ? one : many}`];
  const { locks, elections, ticks, topics, stores } = pageTables;
  const parts = [
    ...of(locks.keys.value.length, "lock", "locks"),
    ...of(elections.keys.value.length, "election", "elections"),
    ...of(ticks.keys.value.length, "schedule", "schedules"),
    ...of(topics.keys.value.length, "topic", "topics"),
    ...of(stores.keys.value.length, "message store", "message stores"),
  ];
  const sinceMs = recordedHour.value?.sinceMs ?? 0;
  const isYoung = programNowMinuteMs.value - sinceMs < hourMs;
  return <>In use: {parts.join(", ")}.{isYoung && ` Recorded since ${utcTimeText(sinceMs).slice(11, 16)} UTC.`}</>;
}

function Activity(): JSX.Element {
  const events = (recordedHour.value?.activity ?? []).slice(-activityShown).toReversed();
  const handovers = newestTotal("handovers");
  return (
    <Card title="Activity" size="narrow" more={handovers === null ? "" : `${rateText(handovers)} handovers/s`}>
      {events.length === 0 && <p class="empty">Nothing has changed since the recording began.</p>}
      <ul class="feed">
        {events.map(({ number, atMs, kind, name, what }) => (
          <li key={number}>
            <Mark kind={kind} />
            <span>
              {name !== "" && <b>{shownText(name)}</b>} {shownText(what)}
            </span>
            <AgeText since={new Date(atMs).toISOString()} />
          </li>
        ))}
      </ul>
    </Card>
  );
}

const rateText = (rate: number) => rate >= 10 ? countText(Math.round(rate)) : String(Math.round(rate * 10) / 10);

function Tiles(): JSX.Element {
  const { done, failed, lost, missed } = dayRunTotals.value;
  const schedules = judgedSchedules.value;
  const topics = pageTables.topics;
  const offline =
    useComputed(() => topics.keys.value.filter((key) => topics.rows.get(key)?.value.there === false).length).value;
  const pending = sumOfStores(({ waiting }) => waiting.count);
  const dead = sumOfStores((states) => states.dead.count);
  const published = newestTotal("published");
  const behind = newestTotal("behind");
  const delivered = newestTotal("delivered");
  const scheduleKind = schedules.length === 0 ? "idle" : schedules[0]?.kind ?? "idle";
  const hasBadRuns = failed + lost + missed > 0;
  return (
    <>
      <Tile
        view="locks"
        title="Locks"
        kind={attentionByView.value.get("locks") ?? "good"}
        big={heldText()}
        unit="held"
        series="held"
        least={4}
      >
        <b>{countText(waitingCount())}</b> waiting{" · "}
        <b>{rateText(newestTotal("handovers") ?? 0)}</b> handovers/s
      </Tile>
      <Tile
        view="ticks"
        title="Schedules"
        kind={scheduleKind === "busy" ? "good" : scheduleKind}
        big={countText(hasBadRuns ? failed + lost + missed : done)}
        unit={hasBadRuns ? "failed, lost or missed in 24 h" : "done in 24 h"}
        series={null}
        least={1}
      >
        <NextTick />
      </Tile>
      <Tile
        view="topics"
        title="Topics"
        kind={attentionByView.value.get("topics") ?? (topics.keys.value.length > 0 ? "good" : "idle")}
        big={published === null ? countText(topics.keys.value.length) : rateText(published)}
        unit={published === null ? "topics" : "messages/s in"}
        series="published"
        least={20}
      >
        {behind !== null && (
          <>
            <b>{countText(behind)}</b> behind{" · "}
          </>
        )}
        <b>{countText(offline)}</b> out of reach
      </Tile>
      <Tile
        view="retry"
        title="Retry"
        kind={attentionByView.value.get("retry") ?? "good"}
        big={countText(pending)}
        unit="waiting"
        series="pending"
        least={20}
      >
        <b>{delivered === null ? "?" : rateText(delivered)}</b> delivered/s{" · "}
        <b>{countText(dead)}</b> dead
      </Tile>
    </>
  );
}

function Tile({ view, title, kind, big, unit, series, least, children }: {
  readonly view: ViewName;
  readonly title: string;
  readonly kind: MarkKind;
  readonly big: string;
  readonly unit: string;
  readonly series: Parameters<typeof recordedPoints>[0] | null;
  readonly least: number;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <a class="card tile" href={`#${view}`}>
      <span class="title">
        {title}
        <Mark kind={kind} label={kind} />
      </span>
      <span class="big">
        {big} <small>{unit}</small>
      </span>
      <span class="text">{children}</span>
      {series === null ? <RunBars /> : (
        <Spark
          what={title}
          points={recordedPoints(series)}
          kind={kind === "bad" && view === "retry" ? "bad" : "busy"}
          least={least}
        />
      )}
    </a>
  );
}

/** Draws the runs of each of the past 24 hours; failures are on top and at least 10 px high. */
function RunBars(): JSX.Element {
  const bars = useComputed(() => {
    const nowMs = programNowMinuteMs.value;
    const hours = Array.from({ length: 24 }, () => ({ good: 0, bad: 0 }));
    for (const { row: { runs } } of judgedSchedules.value) {
      for (const { result, ended, until, tick, count } of runs) {
        const agoMs = Math.max(0, nowMs - parseInstantMs(ended ?? until ?? tick));
        const hour = hours[23 - Math.floor(agoMs / hourMs)];
        if (hour === undefined || result === "skipped") continue;
        if (result === "done") hour.good += count;
        else hour.bad += count;
      }
    }
    return hours;
  }).value;
  const top = Math.max(4, ...bars.map(({ good }) => good));
  return (
    <svg class="spark" viewBox="0 0 240 44" preserveAspectRatio="none" role="img" aria-label="Runs of each hour">
      {bars.map(({ good, bad }, hour) => {
        const goodHeight = good / top * 30;
        const badHeight = bad === 0 ? 0 : 12;
        return (
          <g key={hour}>
            {good > 0 && <rect class="fill good" x={hour * 10} width="8.5" y={44 - goodHeight} height={goodHeight} />}
            {bad > 0 && (
              <rect class="fill bad" x={hour * 10} width="8.5" y={43 - goodHeight - badHeight} height={badHeight} />
            )}
          </g>
        );
      })}
    </svg>
  );
}

function sumOfStores(count: (states: StoreRow["states"]) => number): number {
  const storeRows = pageTables.stores.keys.value.flatMap((key) => pageTables.stores.rows.get(key)?.value ?? []);
  return storeRows.reduce((sum, { states }) => sum + count(states), 0);
}

function lockRows(): FollowedCoordinationRow[] {
  return pageTables.locks.keys.value.flatMap((key) => pageTables.locks.rows.get(key)?.value ?? []);
}

const heldText = () => countText(lockRows().reduce((sum, { holders }) => sum + (holders ?? 0), 0));
const waitingCount = () => lockRows().reduce((sum, { waiters }) => sum + (waiters ?? 0), 0);

/** Names the next tick and the last run. */
function NextTick(): JSX.Element {
  const rows = judgedSchedules.value.map(({ row }) => row);
  const nowMs = programNowMinuteMs.value;
  const next = rows.filter(({ next }) => parseInstantMs(next) >= nowMs)
    .toSorted((a, b) => parseInstantMs(a.next) - parseInstantMs(b.next))[0];
  const last = rows.flatMap(({ name, runs }) => runs.map((run) => ({ name, run, ended: run.ended })))
    .filter(({ ended }) => ended !== null)
    .toSorted((a, b) => parseInstantMs(b.ended) - parseInstantMs(a.ended))[0];
  if (next === undefined && last === undefined) return <>No lock has ticks.</>;
  return (
    <>
      {next !== undefined && next.next !== null && (
        <>
          next <b>{shownText(next.name)}</b> <RelativeTimeText at={next.next} />
        </>
      )}
      {next !== undefined && last !== undefined && " · "}
      {last !== undefined && last.ended !== null && (
        <>
          last <b>{shownText(last.name)}</b> {last.run.result} <RelativeTimeText at={last.ended} />
        </>
      )}
    </>
  );
}

/** Shows the last actions that users have requested in any browser. */
function ActionList(): JSX.Element | null {
  const actions = aboutProgram()?.actions ?? [];
  if (actions.length === 0) return null;
  const kinds = { running: "busy", done: "good", failed: "bad" } as const;
  return (
    <Card title="Actions" more="the newest first">
      <table>
        <caption class="unseen">The last actions, the newest first</caption>
        <tbody>
          {actions.map(({ number, atMs, what, state, result }) => (
            <tr key={number}>
              <td>
                {shownText(what)}
                <span class="sub">{utcTimeText(atMs)}</span>
              </td>
              <td>
                <StateMark kind={kinds[state]} text={result === "" ? state : result} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

function NextRuns(): JSX.Element | null {
  const all = judgedSchedules.value;
  if (all.length === 0) return null;
  const more = <a href="#ticks">18 h back, 6 h ahead: all {countText(all.length)}</a>;
  return (
    <Card title="Schedules" size="wide schedules" more={more}>
      <ScheduleLanes schedules={all.slice(0, overviewLanes)} isBrief />
    </Card>
  );
}

const holdText = (holder: HolderRow, waiters: number | null) =>
  `${waiters === 0 ? "" : `${countText(waiters)} waiting, `}${participantText(holder)}`;

/** The locks that have been held the longest: the commands that run under them, with their usual time. */
function RunningJobs(): JSX.Element | null {
  const held = useComputed(() =>
    pageTables.locks.keys.value.flatMap((key) => {
      const row = pageTables.locks.rows.get(key)?.value;
      const holder = row?.first_holders[0];
      return row === undefined || holder === undefined || holder.since === null ? [] : [{ key, row, holder }];
    }).sort((a, b) => parseInstantMs(a.holder.since) - parseInstantMs(b.holder.since))
  ).value;
  if (held.length === 0) return null;
  return (
    <Card title="Running jobs" size="narrow jobs" more={<a href="#locks">the longest of {countText(held.length)}</a>}>
      <table>
        <caption class="unseen">The locks that have been held the longest, and their holders</caption>
        <tbody>
          {held.slice(0, jobsShown).map(({ key, holder, row }) => (
            <tr key={key}>
              <th scope="row">
                <RowLink table="locks" id={key}>{shownText(row.name)}</RowLink>
                <span class="sub">{shownText(holdText(holder, row.waiters))}</span>
              </th>
              <td class="number">
                <HeldTime row={row} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

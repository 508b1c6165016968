/** Components for table cells: ages, processes, states, progress, and the time line of a schedule. */
import { useComputed } from "@preact/signals";
import type { JSX } from "preact";
import { ageText, countText, relativeText, shownText, utcTimeText } from "../ui/shown_text.ts";
import type { HolderRow, WaiterRow } from "../../base/rows/object_row.ts";
import type { PoolRow } from "../../base/rows/pool_row.ts";
import type { FollowedScheduleRow, RecordedRunRow } from "../../base/rows/schedule_row.ts";
import { programNowMinuteMs, programNowMs } from "./page_state.ts";

/** Shows an age, which grows with the clock. Only its text is redrawn. */
export function AgeText({ since }: { readonly since: string | null }): JSX.Element {
  const text = useComputed(() => since === null ? "" : ageText(programNowMs.value - Date.parse(since)));
  return <time title={utcTimeText(parseInstantMs(since))}>{text}</time>;
}

/** Parses an instant into milliseconds since 1970. Returns 0 for null. */
export const parseInstantMs = (instant: string | null): number => instant === null ? 0 : Date.parse(instant);

export function RelativeTimeText({ at }: { readonly at: string }): JSX.Element {
  const atMs = parseInstantMs(at);
  const text = useComputed(() => relativeText(atMs, programNowMs.value));
  return <time title={utcTimeText(atMs)}>{text}</time>;
}

/** Returns text such as `root@db1:812 backup`. */
export function participantText(
  { user, host, pid, command }: Pick<HolderRow, "user" | "host" | "pid" | "command">,
): string {
  const process = `${user}@${host}${pid === 0 ? "" : `:${pid}`}`;
  return `${process}${command === "" ? "" : ` ${command}`}`;
}

export function participantReasonText({ value, reason, revoke }: HolderRow | WaiterRow): string {
  const asked = revoke === null ? "" : `asked to release it${revoke.by === "" ? "" : ` by ${revoke.by}`}`;
  return [value ?? "", reason, asked].filter((text) => text !== "").join(", ");
}

export function PeopleSummary({ people, count }: {
  readonly people: readonly (HolderRow | WaiterRow)[];
  readonly count: number | null;
}): JSX.Element {
  const [first] = people;
  if (first === undefined) return <>{count === null ? "hidden by an access list" : "-"}</>;
  const others = (count ?? 1) - 1;
  return <>{shownText(participantText(first))}{others > 0 ? ` and ${countText(others)} more` : ""}</>;
}

/** Shows a state in words with a mark. The marks differ in shape, so that users can tell them apart without color. */
export function StateMark(
  { kind, text }: { readonly kind: "good" | "warn" | "bad" | "idle"; readonly text: string },
): JSX.Element {
  const marks = { good: "●", warn: "▲", bad: "✖", idle: "○" };
  return (
    <span class={`state ${kind}`}>
      <span aria-hidden="true">{marks[kind]}</span>
      {shownText(text)}
    </span>
  );
}

export function PoolProgress({ row: { done, failed, holders } }: { readonly row: PoolRow }): JSX.Element {
  const running = holders ?? 0;
  const all = done + failed + running;
  const width = (count: number) => all === 0 ? 0 : 100 * count / all;
  const text = `${countText(done)} done, ${countText(failed)} failed, ${countText(running)} running`;
  return (
    <svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label={text}>
      <rect class="back" width="100" height="10" />
      <rect class="good" width={width(done)} height="10" />
      <rect class="bad" x={width(done)} width={width(failed)} height="10" />
      <rect class="busy" x={width(done) + width(failed)} width={width(running)} height="10" />
    </svg>
  );
}

/** How far back the time line reaches, in milliseconds. */
export const timeLineMs = 24 * 3_600_000;

const lineClass = (result: string) =>
  result === "done" ? "good" : result === "failed" || result === "lost" || result === "missed" ? "bad" : "warn";

/**
 * Draws each run as a bar from its start to its end. Failed runs are low bars, and skipped or missed ticks are hollow.
 */
export function TickTimeLine({ row: { runs, running } }: { readonly row: FollowedScheduleRow }): JSX.Element {
  const now = programNowMinuteMs.value;
  const fromMs = now - timeLineMs;
  const at = (ms: number) => 240 * Math.min(1, Math.max(0, (ms - fromMs) / timeLineMs));
  const visible = runs.filter(({ tick, until, ended }) =>
    Math.max(parseInstantMs(until ?? tick), parseInstantMs(ended)) >= fromMs
  );
  const counts = Map.groupBy(visible, ({ result }) => result);
  const words = [...counts].map(([result, all]) => `${all.reduce((sum, { count }) => sum + count, 0)} ${result}`);
  const label = `last 24 hours: ${words.join(", ") || "no ticks"}${running === null ? "" : ", 1 running"}`;
  return (
    <svg class="line" viewBox="0 0 240 16" preserveAspectRatio="none" role="img" aria-label={label}>
      <rect class="back" width="240" height="16" />
      {visible.map((run) => <RunBar key={`${run.tick} ${run.attempt} ${run.result}`} run={run} at={at} />)}
      {running !== null && <RunningBar beganAt={at(parseInstantMs(running.began))} nowAt={at(now)} />}
    </svg>
  );
}

function RunningBar({ beganAt, nowAt }: { readonly beganAt: number; readonly nowAt: number }): JSX.Element {
  return <rect class="busy" x={beganAt} width={Math.max(2, nowAt - beganAt)} y="3" height="10" />;
}

function RunBar({ run, at }: { readonly run: RecordedRunRow; readonly at: (ms: number) => number }): JSX.Element {
  const from = at(parseInstantMs(run.began ?? run.tick));
  const width = Math.max(2, at(parseInstantMs(run.ended ?? run.until ?? run.tick)) - from);
  const isRun = run.began !== null;
  const name = `${lineClass(run.result)}${isRun ? "" : " hollow"}`;
  const isLow = isRun && run.result !== "done";
  return <rect class={name} x={from} width={width} y={isLow ? 8 : 3} height={isLow ? 5 : 10} />;
}

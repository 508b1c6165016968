/** Parts of table cells: moving ages, processes, states, progress, and the time line of a schedule. */
import { useComputed } from "@preact/signals";
import type { JSX } from "preact";
import { ageText, countText, relativeText, shownText, utcTimeText } from "../ui/shown_text.ts";
import type { PersonRow, PoolRow, TickRow, TickRunRow } from "../ui/ui_rows.ts";
import { programNowMinuteMs, programNowMs } from "./page_state.ts";

/** An age that moves with the clock; only its text is redrawn. */
export function AgeText({ sinceMs }: { readonly sinceMs: number }): JSX.Element {
  const text = useComputed(() => sinceMs === 0 ? "" : ageText(programNowMs.value - sinceMs));
  return <time title={utcTimeText(sinceMs)}>{text}</time>;
}

export function RelativeTimeText({ atMs }: { readonly atMs: number }): JSX.Element {
  const text = useComputed(() => relativeText(atMs, programNowMs.value));
  return <time title={utcTimeText(atMs)}>{text}</time>;
}

/** `root@db1:812 backup`. */
export function personText({ user, host, pid, command }: PersonRow): string {
  const process = `${user}@${host}${pid === 0 ? "" : `:${pid}`}`;
  return `${process}${command === "" ? "" : ` ${command}`}`;
}

export function personWhyText({ value, reason, askedBy }: PersonRow): string {
  const asked = askedBy === null ? "" : `asked to release it${askedBy === "" ? "" : ` by ${askedBy}`}`;
  return [value, reason, asked].filter((text) => text !== "").join(", ");
}

export function PeopleSummary({ people, count }: {
  readonly people: readonly PersonRow[];
  readonly count: number | null;
}): JSX.Element {
  const [first] = people;
  if (first === undefined) return <>{count === null ? "hidden by an access list" : "-"}</>;
  const others = (count ?? 1) - 1;
  return <>{shownText(personText(first))}{others > 0 ? ` and ${countText(others)} more` : ""}</>;
}

/**
 * A state in words with a mark. Each kind has a mark of its own shape, so that color is not needed to tell them apart.
 */
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

export function PoolProgress({ row: { done, failed, running } }: { readonly row: PoolRow }): JSX.Element {
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
export function TickTimeLine({ row: { runs, open } }: { readonly row: TickRow }): JSX.Element {
  const now = programNowMinuteMs.value;
  const fromMs = now - timeLineMs;
  const at = (ms: number) => 240 * Math.min(1, Math.max(0, (ms - fromMs) / timeLineMs));
  const visible = runs.filter(({ untilMs, endedMs }) => Math.max(untilMs, endedMs ?? 0) >= fromMs);
  const counts = Map.groupBy(visible, ({ result }) => result);
  const words = [...counts].map(([result, all]) => `${all.reduce((sum, { count }) => sum + count, 0)} ${result}`);
  const label = `last 24 hours: ${words.join(", ") || "no ticks"}${open === null ? "" : ", 1 running"}`;
  return (
    <svg class="line" viewBox="0 0 240 16" preserveAspectRatio="none" role="img" aria-label={label}>
      <rect class="back" width="240" height="16" />
      {visible.map((run) => <RunBar key={`${run.tickMs} ${run.attempt} ${run.result}`} run={run} at={at} />)}
      {open !== null && (
        <rect class="busy" x={at(open.beganMs)} width={Math.max(2, at(now) - at(open.beganMs))} y="3" height="10" />
      )}
    </svg>
  );
}

function RunBar({ run, at }: { readonly run: TickRunRow; readonly at: (ms: number) => number }): JSX.Element {
  const from = at(run.beganMs ?? run.tickMs);
  const width = Math.max(2, at(run.endedMs ?? run.untilMs) - from);
  const isRun = run.beganMs !== null;
  const name = `${lineClass(run.result)}${isRun ? "" : " hollow"}`;
  const isLow = isRun && run.result !== "done";
  return <rect class={name} x={from} width={width} y={isLow ? 8 : 3} height={isLow ? 5 : 10} />;
}

/** Components for table cells: ages, processes, and progress. */
import { useComputed } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { ageText, countText, relativeText, shownText, utcTimeText } from "../ui/shown_text.ts";
import type { FollowedCoordinationRow, HolderRow, WaiterRow } from "../../base/rows/object_row.ts";
import type { PoolRow } from "../../base/rows/pool_row.ts";
import type { RecordedRunRow } from "../../base/rows/schedule_row.ts";
import { brokenText } from "../../base/rows/row_texts.ts";
import type { TimedLockRow, UiTableName } from "../ui/ui_rows.ts";
import { usualRunMs } from "../ui/usual_time.ts";
import { AgainstUsual } from "./charts.tsx";
import type { MarkKind } from "./marks.tsx";
import { pageTables, programNowMinuteMs, programNowMs, rowHref } from "./page_state.ts";

/** Shows an age, which grows with the clock. Only its text is redrawn. */
export function AgeText({ since }: { readonly since: string | null }): JSX.Element {
  const text = useComputed(() => since === null ? "" : ageText(programNowMs.value - Date.parse(since)));
  return <time title={utcTimeText(parseInstantMs(since))}>{text}</time>;
}

/** Parses an instant into milliseconds since 1970. Returns 0 for null. */
export const parseInstantMs = (instant: string | null): number => instant === null ? 0 : Date.parse(instant);

/** Returns how long a lock is usually held: as long as the runs of its schedule, or as the holds that are known. */
export function usualHoldMs({ name, usual_ms }: TimedLockRow): number | null {
  void pageTables.ticks.keys.value;
  return usualRunMs(pageTables.ticks.rows.get(name)?.value.runs ?? []) ?? usual_ms;
}

/** Shows how long a lock has been held, beside how long it is usually held. */
export function HeldTime({ row }: { readonly row: TimedLockRow }): JSX.Element {
  const since = row.first_holders[0]?.since ?? null;
  const usualMs = usualHoldMs(row);
  if (since === null) return <>-</>;
  const ms = Math.max(0, programNowMinuteMs.value - Date.parse(since));
  return (
    <span class="held">
      {usualMs !== null && <AgainstUsual ms={ms} usualMs={usualMs} />}
      <span>
        <AgeText since={since} />
        {usualMs !== null && <span class="sub">usually {ageText(usualMs)}</span>}
      </span>
    </span>
  );
}

/** Names the first waiter and how long it has waited, and counts the others. */
export function WaitingText({ row: { kind, limit, waiters, first_waiters: [first] } }: {
  readonly row: FollowedCoordinationRow;
}): JSX.Element | string {
  if (first === undefined) return waiters === 0 ? "" : countText(waiters);
  const needed = kind === "barrier" && limit !== null ? ` of ${countText(limit)}` : "";
  const others = (waiters ?? 1) - 1;
  return (
    <>
      {countText(waiters)}
      {needed}: {shownText(`${first.user}@${first.host}`)} <AgeText since={first.since} />
      {others > 0 && `, +${countText(others)}`}
    </>
  );
}

/** Returns the mark of a run's result. */
export const runKind = (result: RecordedRunRow["result"]): MarkKind =>
  result === "done" ? "good" : result === "skipped" || result === "stopped" ? "warn" : "bad";

export function RelativeTimeText({ at }: { readonly at: string }): JSX.Element {
  const atMs = parseInstantMs(at);
  const text = useComputed(() => relativeText(atMs, programNowMs.value));
  return <time title={utcTimeText(atMs)}>{text}</time>;
}

/** Shows when something is due. */
export function DueText({ at }: { readonly at: string }): JSX.Element {
  return parseInstantMs(at) > programNowMs.value ? <RelativeTimeText at={at} /> : (
    <>
      due for <AgeText since={at} />
    </>
  );
}

/** Formats a number of bytes; null if it is not known. */
export function bytesText(bytes: number | null): string {
  if (bytes === null) return "not known";
  const [unit, name] = bytes >= 2 ** 30 ? [2 ** 30, "GiB"] : bytes >= 2 ** 20 ? [2 ** 20, "MiB"] : [2 ** 10, "KiB"];
  return `${countText(Math.round(bytes / unit))}\u00a0${name}`;
}

/** The name of a row, which leads to its details. */
export function RowLink({ table, id, children }: {
  readonly table: UiTableName;
  readonly id: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  return <a class="name" data-row={id} href={rowHref(table, id)}>{children}</a>;
}

/** A column of a short table: its head, and the content of its cell in a row. */
export type ShortColumn<Row> = readonly [head: string, cell: (row: Row, index: number) => ComponentChildren];

/** Shows a few rows. The first column names the row. A column that is empty in each row is not shown. */
export function ShortTable<Row>({ caption, name = "", rows, columns }: {
  readonly caption: string;
  /** The class of the table. */
  readonly name?: string;
  readonly rows: readonly Row[];
  readonly columns: readonly ShortColumn<Row>[];
}): JSX.Element {
  const cells = rows.map((row, index) => columns.map(([, cell]) => cell(row, index)));
  const isShown = columns.map((_, column) => cells.some((row) => row[column] !== "" && row[column] !== null));
  return (
    <table class={name}>
      <caption>{caption}</caption>
      <thead>
        <tr>{columns.map(([head], column) => isShown[column] && <th key={head} scope="col">{head}</th>)}</tr>
      </thead>
      <tbody>
        {cells.map((row, index) => (
          <tr key={index}>
            <th scope="row">{row[0]}</th>
            {columns.slice(1).map(([head], column) =>
              isShown[column + 1] && <td key={head} data-head={head}>{row[column + 1]}</td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A list of fields with their values. */
export function Fields(
  { fields }: { readonly fields: readonly (readonly [string, ComponentChildren])[] },
): JSX.Element {
  return (
    <dl>
      {fields.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value === "" ? "-" : value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Returns text such as `root@db1:812 backup`. */
export function participantText(
  { user, host, pid, command }: Pick<HolderRow, "user" | "host" | "pid" | "command">,
): string {
  const process = `${user}@${host}${pid === 0 ? "" : `:${pid}`}`;
  return `${process}${command === "" ? "" : ` ${command}`}`;
}

export function participantReasonText({ value, reason, revoke }: HolderRow | WaiterRow): string {
  return [value ?? "", reason, brokenText(revoke)].filter((text) => text !== "").join(", ");
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

export function PoolProgress({ row: { done, failed, holders } }: { readonly row: PoolRow }): JSX.Element {
  const running = holders ?? 0;
  const all = done + failed + running;
  const width = (count: number) => all === 0 ? 0 : 100 * count / all;
  const text = `${countText(done)} done, ${countText(failed)} failed, ${countText(running)} running`;
  return (
    <svg class="progress" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label={text}>
      <rect class="track" width="100" height="10" />
      <rect class="fill good" width={width(done)} height="10" />
      <rect class="fill bad" x={width(done)} width={width(failed)} height="10" />
      <rect class="fill busy" x={width(done) + width(failed)} width={width(running)} height="10" />
    </svg>
  );
}

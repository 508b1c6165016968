/** Components for table cells: ages, processes, and progress. */
import { useComputed } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { ageText, countText, relativeText, shownText, utcTimeText } from "../ui/shown_text.ts";
import type { HolderRow, WaiterRow } from "../../base/rows/object_row.ts";
import type { PoolRow } from "../../base/rows/pool_row.ts";
import { brokenText } from "../../base/rows/row_texts.ts";
import { programNowMs } from "./page_state.ts";

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

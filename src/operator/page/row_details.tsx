/** Shows the details of one row in a dialog, which updates when the row changes. */
import { type Signal, useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useRef } from "preact/hooks";
import { ageText, countText, shownText, utcTimeText } from "../ui/shown_text.ts";
import type { FollowedCoordinationRow, HolderRow, WaiterRow } from "../../base/rows/object_row.ts";
import type { FollowedPoolRow } from "../../base/rows/pool_row.ts";
import type { FollowedScheduleRow, RecordedRunRow } from "../../base/rows/schedule_row.ts";
import type { TopicServerRow } from "../../base/rows/topic_row.ts";
import type { RatedStoreRow, RatedTopicRow, TimedLockRow } from "../ui/ui_rows.ts";
import { HolderActions } from "./action_dialog.tsx";
import { DeadLetters } from "./dead_letters.tsx";
import { Lane, LaneAxis, type LaneBlock } from "./charts.tsx";
import { StateMark } from "./marks.tsx";
import { pageTables, programNowMinuteMs, rowName, rowTitles } from "./page_state.ts";
import { requestJsonFromProgram } from "./read_stream.ts";
import {
  AgeText,
  bytesText,
  DueText,
  Fields,
  parseInstantMs,
  participantReasonText,
  participantText,
  RelativeTimeText,
  runKind,
  ShortTable,
  usualHoldMs,
} from "./row_parts.tsx";
import { dayRange, laneBlocks, ScheduleLane } from "./schedules.tsx";
import { ServerActions, TopicDetailsView } from "./topic_view.tsx";
import { tickScheduleState } from "./views.tsx";

export interface OpenRowKey {
  readonly table: keyof typeof pageTables;
  readonly key: string;
}

export function RowDialog({ open, onClose }: {
  readonly open: Signal<OpenRowKey | null>;
  readonly onClose: () => void;
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useSignalEffect(() => {
    if (open.value === null) dialog.current?.close();
    else if (dialog.current?.open === false) dialog.current.showModal();
  });
  const shown = open.value;
  const title = shown === null ? "" : `${rowTitles[shown.table] ?? ""} ${shownText(rowName(shown.table, shown.key))}`;
  return (
    <dialog ref={dialog} class="sheet" aria-label={title} onClose={onClose}>
      {shown !== null && (
        <>
          <header>
            <h2>{title}</h2>
            <button type="button" onClick={onClose}>Close</button>
          </header>
          <Details shown={shown} />
        </>
      )}
    </dialog>
  );
}

function Details({ shown: { table, key } }: { readonly shown: OpenRowKey }): JSX.Element {
  void pageTables[table].keys.value; // draws again when the row is removed
  const row = pageTables[table].rows.get(key)?.value;
  if (row === undefined) return <p role="status">It is no longer there.</p>;
  if (table === "locks" || table === "elections" || table === "barriers") {
    return <UseDetails row={row as FollowedCoordinationRow} />;
  }
  if (table === "pools") return <PoolDetails row={row as FollowedPoolRow} />;
  if (table === "ticks") return <TickDetails row={row as FollowedScheduleRow} />;
  if (table === "topics") return <TopicDetailsView key={key} row={row as RatedTopicRow} />;
  if (table === "stores") return <StoreDetails key={key} row={row as RatedStoreRow} />;
  return (
    <>
      <Fields fields={Object.entries(row).map(([name, value]) => [fieldName(name), fieldText(value)])} />
      {table === "servers" && <ServerActions row={row as TopicServerRow} />}
    </>
  );
}

function StoreDetails({ row }: { readonly row: RatedStoreRow }): JSX.Element {
  const { folder, states, oldest, next, paused, processors, rate, dead_letters: { pending, error }, disk } = row;
  const count = ({ count, bytes }: (typeof states)["waiting"]) =>
    `${countText(count)}${bytes === 0 ? "" : ` (${bytesText(bytes)})`}`;
  const forwarding = `${countText(pending)} to be forwarded${error === null ? "" : `: ${shownText(error)}`}`;
  return (
    <>
      <Fields
        fields={[
          ["Processors", paused ? `${countText(processors)}, paused` : countText(processors)],
          ["Delivered", rate === null ? "-" : `${countText(rate)}/s`],
          ["Waiting", count(states.waiting)],
          ["Oldest accepted", oldest === null ? "-" : <RelativeTimeText key="oldest" at={oldest} />],
          ["Next try", next === null ? "-" : <DueText key="next" at={next} />],
          ["In flight", count(states.in_flight)],
          ["Dead", `${count(states.dead)}${pending === 0 ? "" : `, ${forwarding}`}`],
          ["Done", count(states.done)],
          ["Dropped, cancelled", `${countText(states.dropped.count)}, ${countText(states.cancelled.count)}`],
          ["Disk", `${bytesText(disk.used_bytes)} used, ${bytesText(disk.free_bytes)} free`],
          ["Folder", shownText(folder)],
        ]}
      />
      <DeadLetters store={row} />
    </>
  );
}

const fieldName = (name: string) => {
  return name.replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase());
};

function fieldText(value: unknown): ComponentChildren {
  if (value === null) return "-";
  if (typeof value === "number") return countText(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "object") {
    const texts = Object.entries(value).map(([key, one]) =>
      `${shownText(key.replaceAll("_", " "))} ${typeof one === "number" ? countText(one) : shownText(String(one))}`
    );
    return texts.join(", ") || "-";
  }
  if (/^\d{4}-\d\d-\d\dT/.test(String(value))) return utcTimeText(parseInstantMs(String(value)));
  return shownText(String(value));
}

function UseDetails({ row }: { readonly row: FollowedCoordinationRow }): JSX.Element {
  const { kind, limit, first_holders, first_waiters, holders, waiters, problem } = row;
  const usualMs = "usual_ms" in row ? usualHoldMs(row as TimedLockRow) : null;
  const words = kind === "election"
    ? { holders: "Leader", waiters: "Candidates, in their order" }
    : kind === "lock"
    ? { holders: "Holders", waiters: "Queue, in its order" }
    : { holders: "Inside", waiters: "Waiting" };
  return (
    <>
      {problem !== null && (
        <p>
          <StateMark kind="bad" text={problem} />
        </p>
      )}
      {usualMs !== null && <p>Usually held for {ageText(usualMs)}.</p>}
      {limit !== null && <p>{kind === "barrier" ? "Members that it needs" : "Permits"}: {countText(limit)}</p>}
      <PeopleTable caption={words.holders} people={first_holders} count={holders} row={row} />
      <PeopleTable caption={words.waiters} people={first_waiters} count={waiters} row={row} />
      {(kind === "lock" || kind === "election") && <PastHolds key={row.name} row={row} />}
    </>
  );
}

function PeopleTable({ caption, people, count, row }: {
  readonly caption: string;
  readonly people: readonly (HolderRow | WaiterRow)[];
  readonly count: number | null;
  readonly row: FollowedCoordinationRow;
}): JSX.Element {
  if (people.length === 0) return <p>{caption}: {count === null ? "hidden by an access list" : "none"}</p>;
  return (
    <>
      <ShortTable
        caption={`${caption} (${countText(count)})`}
        rows={people}
        columns={[
          ["Process", (person) => (
            <>
              {shownText(placeText(person) + participantText(person))}
              {"rank" in person && (
                <div class="buttons">
                  <HolderActions row={row} person={person} />
                </div>
              )}
            </>
          )],
          ["For", ({ since }) => <AgeText since={since} />],
          ["How", ({ mode }) => mode ?? ""],
          ["Priority", (person) => "priority" in person ? countText(person.priority) : ""],
          ["Token", (person) => shownText("fencing_token" in person ? person.fencing_token ?? "" : "")],
          ["Id", ({ id }) => shownText(id?.slice(0, 8) ?? "")],
          ["Why", (person) => shownText(participantReasonText(person))],
        ]}
      />
      {(count ?? 0) > people.length && <p>The first {people.length} are shown.</p>}
    </>
  );
}

/** The place in a queue, or the rank at a barrier. */
function placeText(person: HolderRow | WaiterRow): string {
  const place = "place" in person ? person.place : person.rank;
  return place === null ? "" : `${place}. `;
}

function PoolDetails({ row: { done, failed, holders, items } }: { readonly row: FollowedPoolRow }): JSX.Element {
  return (
    <>
      <Fields fields={[["Running", countText(holders)], ["Done", countText(done)], ["Failed", countText(failed)]]} />
      {items.length === 0 ? <p>No item runs, and none has failed.</p> : (
        <ShortTable
          caption="Items that run or failed"
          rows={items}
          columns={[
            ["Item", ({ item }) => shownText(item)],
            ["State", ({ state }) => <StateMark kind={state === "failed" ? "bad" : "busy"} text={state} />],
            ["For", ({ holder, last_result }) => <AgeText since={holder?.since ?? last_result?.at ?? null} />],
            ["By", ({ holder, last_result }) => {
              return shownText(holder === null ? last_result?.by ?? "" : participantText(holder));
            }],
            ["Detail", ({ last_result }) => shownText(last_result?.what ?? "")],
          ]}
        />
      )}
    </>
  );
}

function TickDetails({ row }: { readonly row: FollowedScheduleRow }): JSX.Element {
  const { schedule, time_zone, next, running, runs } = row;
  const { kind, text } = tickScheduleState(row, programNowMinuteMs.value);
  return (
    <>
      <Fields
        fields={[
          ["Schedule", shownText(`${schedule} (${time_zone})`)],
          ["State", <StateMark key="state" kind={kind} text={text} />],
          ["Next", next === null ? "none" : utcTimeText(parseInstantMs(next))],
          ...(running === null ? [] : [["Runs since", utcTimeText(parseInstantMs(running.began))] as const]),
        ]}
      />
      <ScheduleLane row={row} />
      <LaneAxis range={dayRange(programNowMinuteMs.value)} />
      <RunTable caption="Last ticks, the newest first (UTC)" runs={runs} />
    </>
  );
}

/** The past holds of a lock, or terms of an election, over 24 hours. */
function PastHolds({ row: { kind, name, first_holders } }: { readonly row: FollowedCoordinationRow }): JSX.Element {
  const runs = useSignal<readonly RecordedRunRow[]>([]);
  const why = useSignal("reading the history");
  useSignalEffect(() => {
    requestJsonFromProgram<RecordedRunRow[]>(`/history?${new URLSearchParams({ kind, name })}`).then((found) => {
      runs.value = found;
      why.value = found.length > 0
        ? ""
        : `No history: baton ${kind === "lock" ? "lock" : "elect"} --history records one.`;
    }, (thrown: unknown) => why.value = thrown instanceof Error ? thrown.message : String(thrown));
  });
  const nowMs = programNowMinuteMs.value;
  const range = { fromMs: nowMs - 86_400_000, nowMs, toMs: nowMs };
  const holds = first_holders.map(({ since, host }): LaneBlock => {
    return { fromMs: parseInstantMs(since) || nowMs, toMs: nowMs, kind: "running", title: `held on ${host}` };
  });
  const blocks = [...laneBlocks({ runs: runs.value, running: null }, nowMs), ...holds];
  return (
    <>
      <h3>Past 24 hours</h3>
      <Lane range={range} blocks={blocks} nextMs={[]} label={`${countText(runs.value.length)} recorded`} />
      <LaneAxis range={range} />
      {why.value !== "" && <p>{shownText(why.value)}</p>}
      <RunTable caption="Last holds, the newest first (UTC)" runs={runs.value} />
    </>
  );
}

function RunTable({ caption, runs }: {
  readonly caption: string;
  readonly runs: readonly RecordedRunRow[];
}): JSX.Element | null {
  if (runs.length === 0) return null;
  return (
    <ShortTable
      caption={caption}
      rows={runs.toReversed()}
      columns={[
        ["Time", runTimeText],
        ["Result", ({ result }) => <StateMark kind={runKind(result)} text={result} />],
        ["Try", ({ attempt }) => attempt === 0 ? "" : attempt],
        ["Host", ({ host }) => shownText(host)],
        ["Took", ({ began, ended }) => {
          return began === null || ended === null ? "" : ageText(parseInstantMs(ended) - parseInstantMs(began));
        }],
        ["Why", runReasonText],
      ]}
    />
  );
}

function runTimeText({ tick, until, count, began }: RecordedRunRow): string {
  const range = count > 1 ? ` to ${utcTimeText(parseInstantMs(until))} (${countText(count)})` : "";
  return `${utcTimeText(parseInstantMs(tick ?? began))}${range}`;
}

/** Says why a run ended; without a reason, its signal or its exit code. */
function runReasonText({ signal, exit_code, why }: RecordedRunRow): string {
  return shownText(why ?? signal ?? (exit_code === null || exit_code === 0 ? "" : `exit ${exit_code}`));
}

/** Shows the details of one row in a dialog, which updates when the row changes. */
import { type Signal, useSignal, useSignalEffect } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useRef } from "preact/hooks";
import { ageText, countText, shownText, utcTimeText } from "../ui/shown_text.ts";
import type { FollowedCoordinationRow, HolderRow, WaiterRow } from "../../base/rows/object_row.ts";
import type { FollowedPoolRow } from "../../base/rows/pool_row.ts";
import type { FollowedScheduleRow, RecordedRunRow } from "../../base/rows/schedule_row.ts";
import type { StoreRow } from "../../base/rows/store_row.ts";
import type { TopicListRow, TopicServerRow } from "../../base/rows/topic_row.ts";
import { HolderActions } from "./action_dialog.tsx";
import { DeadLetters } from "./dead_letters.tsx";
import { Lane, LaneAxis, type LaneBlock } from "./charts.tsx";
import { StateMark } from "./marks.tsx";
import { pageTables, programNowMinuteMs } from "./page_state.ts";
import { requestJsonFromProgram } from "./read_stream.ts";
import { AgeText, Fields, parseInstantMs, participantReasonText, participantText } from "./row_parts.tsx";
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
  const title = shown === null ? "" : `${titles[shown.table] ?? "Row"} ${shownText(nameOf(shown))}`;
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

const titles: Partial<Record<keyof typeof pageTables, string>> = {
  locks: "Lock",
  elections: "Election",
  barriers: "Barrier",
  pools: "Pool",
  ticks: "Schedule",
  topics: "Topic",
  servers: "Server",
  stores: "Store",
  processes: "Process",
};

function nameOf({ table, key }: OpenRowKey): string {
  const row = pageTables[table].rows.get(key)?.peek();
  return row !== undefined && "name" in row ? row.name : key;
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
  if (table === "topics") return <TopicDetailsView key={key} row={row as TopicListRow} />;
  return (
    <>
      <Fields fields={Object.entries(row).map(([name, value]) => [fieldName(name), fieldText(value)])} />
      {table === "servers" && <ServerActions row={row as TopicServerRow} />}
      {table === "stores" && <DeadLetters key={key} store={row as StoreRow} />}
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
      `${shownText(key.replaceAll("_", " "))} ${numberText(one)}`
    );
    return texts.join(", ") || "-";
  }
  if (/^\d{4}-\d\d-\d\dT/.test(String(value))) return utcTimeText(parseInstantMs(String(value)));
  return shownText(String(value));
}

/** Returns a value as text; for an object with a count, the count. */
function numberText(value: unknown): string {
  if (typeof value === "object" && value !== null && "count" in value) return numberText(value.count);
  return typeof value === "number" ? countText(value) : value === null ? "-" : shownText(String(value));
}

function UseDetails({ row }: { readonly row: FollowedCoordinationRow }): JSX.Element {
  const { kind, limit, first_holders, first_waiters, holders, waiters, problem } = row;
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
      {limit !== null && <p>{kind === "barrier" ? "Members that it needs" : "Permits"}: {countText(limit)}</p>}
      <PeopleTable caption={words.holders} people={first_holders} count={holders} row={row} isQueue={false} />
      <PeopleTable caption={words.waiters} people={first_waiters} count={waiters} row={row} isQueue />
      {(kind === "lock" || kind === "election") && <PastHolds key={row.name} row={row} />}
    </>
  );
}

function PeopleTable({ caption, people, count, row, isQueue }: {
  readonly caption: string;
  readonly people: readonly (HolderRow | WaiterRow)[];
  readonly count: number | null;
  readonly row: FollowedCoordinationRow;
  readonly isQueue: boolean;
}): JSX.Element {
  if (people.length === 0) return <p>{caption}: {count === null ? "hidden by an access list" : "none"}</p>;
  const heads = [isQueue ? "Place" : "Rank", "Process", "For", "How", isQueue ? "Id" : "Token", "Why"];
  return (
    <>
      <table>
        <caption>{caption} ({countText(count)})</caption>
        <thead>
          <tr>{heads.map((head) => <th key={head} scope="col">{head}</th>)}</tr>
        </thead>
        <tbody>
          {people.map((person, index) => (
            <tr key={person.id ?? index}>
              <td data-head={heads[0]}>{("place" in person ? person.place : person.rank) ?? "-"}</td>
              <th scope="row">
                {shownText(participantText(person))} {"rank" in person && <HolderActions row={row} person={person} />}
              </th>
              <td data-head="For">
                <AgeText since={person.since} />
              </td>
              <td data-head="How">{person.mode ?? "-"}</td>
              <td data-head={heads[4]}>
                {shownText(("place" in person ? person.id?.slice(0, 8) : person.fencing_token) ?? "-")}
              </td>
              <td data-head="Why">{shownText(participantReasonText(person)) || "-"}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {(count ?? 0) > people.length && <p>The first {people.length} are shown.</p>}
    </>
  );
}

function PoolDetails({ row: { done, failed, holders, items } }: { readonly row: FollowedPoolRow }): JSX.Element {
  return (
    <>
      <Fields fields={[["Running", countText(holders)], ["Done", countText(done)], ["Failed", countText(failed)]]} />
      {items.length === 0 ? <p>No item runs, and none has failed.</p> : (
        <table>
          <caption>Items that run or failed</caption>
          <thead>
            <tr>{["Item", "State", "For", "By", "Detail"].map((head) => <th key={head} scope="col">{head}</th>)}</tr>
          </thead>
          <tbody>
            {items.map(({ item, state, holder, last_result }) => (
              <tr key={`${state} ${item}`}>
                <th scope="row">{shownText(item)}</th>
                <td data-head="State">
                  <StateMark kind={state === "failed" ? "bad" : "good"} text={state} />
                </td>
                <td data-head="For">
                  <AgeText since={holder?.since ?? last_result?.at ?? null} />
                </td>
                <td data-head="By">
                  {holder === null ? shownText(last_result?.by ?? "-") : shownText(participantText(holder))}
                </td>
                <td data-head="Detail">{shownText(last_result?.what || "-")}</td>
              </tr>
            ))}
          </tbody>
        </table>
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
  const heads = ["Time", "Result", "Try", "Host", "Took", "Why"];
  return (
    <table>
      <caption>{caption}</caption>
      <thead>
        <tr>{heads.map((head) => <th key={head} scope="col">{head}</th>)}</tr>
      </thead>
      <tbody>
        {runs.toReversed().map((run) => <RunCells key={`${run.tick} ${run.began} ${run.result}`} run={run} />)}
      </tbody>
    </table>
  );
}

function RunCells({ run }: { readonly run: RecordedRunRow }): JSX.Element {
  const { tick, until, count, result, attempt, host, began, ended, exit_code, signal, why } = run;
  const range = count > 1 ? ` to ${utcTimeText(parseInstantMs(until))} (${countText(count)})` : "";
  const end = signal ?? (exit_code === null || exit_code === 0 ? "" : `exit ${exit_code}`);
  return (
    <tr>
      <th scope="row">{utcTimeText(parseInstantMs(tick ?? began))}{range}</th>
      <td data-head="Result">
        <StateMark kind={result === "done" ? "good" : result === "skipped" ? "warn" : "bad"} text={result} />
      </td>
      <td data-head="Try">{attempt === 0 ? "-" : attempt}</td>
      <td data-head="Host">{shownText(host) || "-"}</td>
      <td data-head="Took">
        {began === null || ended === null ? "-" : ageText(parseInstantMs(ended) - parseInstantMs(began))}
      </td>
      <td data-head="Why">{[end, shownText(why ?? "")].filter((text) => text !== "").join(", ") || "-"}</td>
    </tr>
  );
}

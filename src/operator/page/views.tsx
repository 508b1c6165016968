/** The columns of the tables. */
import type { ComponentChildren } from "preact";
import { countText, shownText } from "../ui/shown_text.ts";
import type { FollowedCoordinationRow } from "../../base/rows/object_row.ts";
import type { FollowedPoolRow } from "../../base/rows/pool_row.ts";
import { topicStateText } from "../../base/rows/row_texts.ts";
import { type FollowedScheduleRow, isScheduleOverdue } from "../../base/rows/schedule_row.ts";
import { undeliveredDeadLetters } from "../../base/rows/store_row.ts";
import type { TopicServerRow } from "../../base/rows/topic_row.ts";
import type { TopicReading } from "../ui/topic_reading.ts";
import { Spark } from "./charts.tsx";
import { topicPoints } from "./recorded_hour.ts";
import type { RatedProcessRow, RatedStoreRow, RatedTopicRow, TimedLockRow } from "../ui/ui_rows.ts";
import { attentionOfRow } from "./attention.ts";
import type { TableColumn } from "./data_table.tsx";
import { type MarkKind, StateMark } from "./marks.tsx";
import {
  AgeText,
  bytesText,
  DueText,
  HeldTime,
  parseInstantMs,
  participantReasonText,
  participantText,
  PeopleSummary,
  PoolProgress,
  RelativeTimeText,
  runKind,
  WaitingText,
} from "./row_parts.tsx";

const nameColumn = <Row extends { readonly name: string }>(): TableColumn<Row> => ({
  id: "name",
  head: "Name",
  text: ({ name }) => name,
});

const sinceOf = ({ first_holders: [holder], first_waiters: [waiter] }: FollowedCoordinationRow) =>
  holder?.since ?? waiter?.since ?? null;

const whyOf = (row: FollowedCoordinationRow) =>
  row.problem ?? (row.first_holders[0] === undefined ? "" : participantReasonText(row.first_holders[0]));

function useColumns(
  words: { readonly holder: string; readonly waiting: string; readonly why: string },
): readonly TableColumn<FollowedCoordinationRow>[] {
  return [
    nameColumn(),
    {
      id: "holder",
      head: words.holder,
      text: ({ first_holders }) => first_holders.map(participantText).join(" "),
      cell: ({ first_holders, holders }) => <PeopleSummary people={first_holders} count={holders} />,
    },
    {
      id: "since",
      head: "For",
      text: () => "",
      order: (row) => -parseInstantMs(sinceOf(row)),
      cell: (row) => <AgeText since={sinceOf(row)} />,
      isNumber: true,
    },
    {
      id: "waiting",
      head: words.waiting,
      text: ({ first_waiters }) => first_waiters.map(participantText).join(" "),
      order: ({ waiters }) => waiters ?? -1,
      cell: (row) => <WaitingText row={row} />,
    },
    { id: "why", head: words.why, text: whyOf, cell: (row) => whyCell(row) },
  ];
}

function whyCell(row: FollowedCoordinationRow): ComponentChildren {
  const isBad = row.problem !== null || row.first_holders.some(({ revoke }) => revoke !== null);
  return isBad ? <StateMark kind={row.problem === null ? "warn" : "bad"} text={whyOf(row)} /> : shownText(whyOf(row));
}

export const lockTableColumns: readonly TableColumn<TimedLockRow>[] = [
  ...useColumns({ holder: "Holder", waiting: "Waiting", why: "Why" }).map((column) =>
    column.id === "since" ? { ...column, cell: (row: TimedLockRow) => <HeldTime row={row} /> } : column
  ),
];
export const electionTableColumns = useColumns({ holder: "Leader", waiting: "Candidates", why: "Value" });

export const barrierTableColumns: readonly TableColumn<FollowedCoordinationRow>[] = [
  nameColumn(),
  { id: "kind", head: "Kind", text: ({ kind }) => kind },
  ...useColumns({ holder: "Inside", waiting: "Waiting", why: "Why" }).slice(1),
];

function numberColumn<Row>(id: string, head: string, number: (row: Row) => number): TableColumn<Row> {
  return { id, head, text: (row) => countText(number(row)), order: number, isNumber: true };
}

export const poolTableColumns: readonly TableColumn<FollowedPoolRow>[] = [
  nameColumn(),
  {
    id: "progress",
    head: "Progress",
    text: () => "",
    order: ({ done, failed, holders }) => (done + failed) / Math.max(1, done + failed + (holders ?? 0)),
    cell: (row) => <PoolProgress row={row} />,
  },
  numberColumn("running", "Running", ({ holders }) => holders ?? 0),
  numberColumn("done", "Done", ({ done }) => done),
  {
    ...numberColumn<FollowedPoolRow>("failed", "Failed", ({ failed }) => failed),
    cell: ({ failed }) => failed === 0 ? "0" : <StateMark kind="bad" text={countText(failed)} />,
  },
];

function diskColumn<Row>(freeBytes: (row: Row) => number | null): TableColumn<Row> {
  return {
    id: "disk",
    head: "Disk free",
    text: (row) => freeBytes(row) === null ? "-" : bytesText(freeBytes(row)),
    order: (row) => freeBytes(row) ?? Infinity,
    isNumber: true,
  };
}

/** Returns the state of a schedule, in words and as a kind of mark. */
export function tickScheduleState(row: FollowedScheduleRow, now: number): {
  readonly kind: MarkKind;
  readonly text: string;
} {
  const { running, runs } = row;
  if (running !== null) {
    const { host, lost } = running;
    return lost ? { kind: "bad", text: `lost on ${host}` } : { kind: "busy", text: `runs on ${host}` };
  }
  if (isScheduleOverdue(row, now)) return { kind: "bad", text: "overdue" };
  const last = runs.at(-1);
  if (last === undefined) return { kind: "idle", text: "no run yet" };
  return { kind: runKind(last.result), text: `last ${last.result}` };
}

/** Returns the state of a topic: its mark is green only if the topic has no finding. */
export function topicState(row: RatedTopicRow): { readonly kind: MarkKind; readonly text: string } {
  const state = topicStateText(row);
  const kind = state === "offline" ? "bad" : attentionOfRow("topics", row.topic);
  return state === "stored" ? { kind: kind ?? "good", text: "served" } : { kind: kind ?? "warn", text: state };
}

/** A number of a topic with its past hour. A topic without a reading has no number. */
function readingColumn(
  id: "rate" | "behind",
  head: string,
  knownText: (reading: TopicReading) => string,
): TableColumn<RatedTopicRow> {
  const textOf = ({ reading }: RatedTopicRow) =>
    reading === null || reading[id] === null ? "no reading" : knownText(reading);
  return {
    id,
    head,
    text: textOf,
    order: ({ reading }) => reading?.[id] ?? -1,
    cell: (row) => {
      const kind = id === "behind" ? attentionOfRow("topics", row.topic) : undefined;
      const points = topicPoints(row.topic, id);
      return (
        <span class="charted">
          {row.reading !== null && <Spark what={head} points={points} kind={kind ?? "busy"} least={20} />}
          <span class={`state ${row.reading === null ? "" : kind}`}>{textOf(row)}</span>
        </span>
      );
    },
    isNumber: id === "rate",
  };
}

export const topicTableColumns: readonly TableColumn<RatedTopicRow>[] = [
  { id: "topic", head: "Topic", text: ({ topic }) => topic },
  { id: "server", head: "Owner", text: ({ server }) => server },
  {
    id: "state",
    head: "State",
    text: (row) => topicState(row).text,
    cell: (row) => <StateMark {...topicState(row)} />,
  },
  readingColumn("rate", "In", ({ rate }) => `${countText(rate)}/s`),
  readingColumn(
    "behind",
    "Slowest subscriber",
    ({ slowest, behind }) => slowest === null ? "-" : `${shownText(slowest)}, ${countText(behind)} behind`,
  ),
  {
    ...numberColumn("subscribers", "Subscribers", ({ reading }) => reading?.subscribers ?? -1),
    text: ({ reading }) => countText(reading?.subscribers ?? null),
  },
  {
    id: "read",
    head: "Read",
    text: () => "",
    order: ({ reading }) => -parseInstantMs(reading?.at ?? null),
    cell: ({ reading }) => reading === null ? "-" : <RelativeTimeText at={reading.at} />,
    isNumber: true,
  },
];

export const storeTableColumns: readonly TableColumn<RatedStoreRow>[] = [
  nameColumn(),
  {
    ...numberColumn<RatedStoreRow>("processors", "Processors", ({ processors }) => processors ?? -1),
    text: ({ processors }) => countText(processors),
  },
  numberColumn("waiting", "Waiting", ({ states }) => states.waiting.count),
  numberColumn("flight", "In flight", ({ states }) => states.in_flight.count),
  {
    ...numberColumn<RatedStoreRow>("dead", "Dead letters", ({ states }) => states.dead.count),
    cell: (row) => {
      const text = countText(row.states.dead.count);
      return undeliveredDeadLetters(row) === 0 ? text : <StateMark kind="bad" text={text} />;
    },
  },
  numberColumn("done", "Done", ({ states }) => states.done.count),
  {
    id: "rate",
    head: "Delivered",
    text: ({ rate }) => rate === null ? "-" : `${countText(rate)}/s`,
    order: ({ rate }) => rate ?? -1,
    isNumber: true,
  },
  {
    id: "oldest",
    head: "Oldest",
    text: () => "",
    order: ({ oldest }) => -(parseInstantMs(oldest) || Infinity),
    cell: ({ oldest }) => oldest === null ? "-" : <AgeText since={oldest} />,
    isNumber: true,
  },
  {
    id: "next",
    head: "Next try",
    text: ({ paused }) => paused ? "paused" : "",
    order: ({ next }) => parseInstantMs(next) || Infinity,
    cell: ({ paused, next }) =>
      paused ? <StateMark kind="warn" text="paused" /> : next === null ? "-" : <DueText at={next} />,
  },
  diskColumn(({ disk }) => disk.free_bytes),
];

export const serverTableColumns: readonly TableColumn<TopicServerRow>[] = [
  { id: "server", head: "Server", text: ({ server }) => server },
  {
    id: "state",
    head: "State",
    text: ({ endpoint, draining }) => endpoint === null ? "offline" : draining ? "draining" : "serving",
    cell: ({ endpoint, draining }) =>
      endpoint === null
        ? <StateMark kind="bad" text="offline" />
        : <StateMark kind={draining ? "warn" : "good"} text={draining ? "draining" : "serving"} />,
  },
  { id: "endpoint", head: "Endpoint", text: ({ endpoint }) => endpoint ?? "-" },
  numberColumn("topics", "Topics", ({ topic_count }) => topic_count),
];

const numbersText = (numbers: Readonly<Record<string, number>>, unit = "") =>
  Object.entries(numbers).map(([what, number]) => `${what} ${countText(number)}${unit}`).join(", ");

export const processTableColumns: readonly TableColumn<RatedProcessRow>[] = [
  { id: "address", head: "Metrics at", text: ({ address }) => address },
  {
    id: "process",
    head: "Process",
    text: ({ process, error }) => process ?? error ?? "",
    cell: ({ process, error }) =>
      process === null ? <StateMark kind="bad" text={error ?? "unreachable"} /> : shownText(process),
  },
  { id: "rates", head: "Rates", text: ({ rates }) => numbersText(rates, "/s") },
  { id: "now", head: "Now", text: ({ gauges }) => numbersText(gauges) },
  diskColumn(({ disk_free_bytes }) => disk_free_bytes),
];

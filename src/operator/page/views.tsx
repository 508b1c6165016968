/** The views of the page, and the columns of their tables. */
import type { ComponentChildren } from "preact";
import { countText, shownText } from "../ui/shown_text.ts";
import type { MetricsRow, PoolRow, ServerRow, ShownTopicRow, StoreRow, TickRow, UseRow } from "../ui/ui_rows.ts";
import type { TableColumn } from "./data_table.tsx";
import { programNowMinuteMs } from "./page_state.ts";
import {
  AgeText,
  PeopleSummary,
  personText,
  personWhyText,
  PoolProgress,
  RelativeTimeText,
  StateMark,
  TickTimeLine,
  timeLineMs,
} from "./row_parts.tsx";

export const viewNames = [
  "overview",
  "locks",
  "elections",
  "barriers",
  "pools",
  "ticks",
  "topics",
  "retry",
  "servers",
] as const;
export type ViewName = (typeof viewNames)[number];

export const viewTitles: Readonly<Record<ViewName, string>> = {
  overview: "Overview",
  locks: "Locks",
  elections: "Elections",
  barriers: "Barriers",
  pools: "Pools",
  ticks: "Ticks",
  topics: "Topics",
  retry: "Retry",
  servers: "Servers",
};

const nameColumn = <Row extends { readonly name: string }>(): TableColumn<Row> => ({
  id: "name",
  head: "Name",
  text: ({ name }) => name,
});

const sinceOf = ({ holders, waiters }: UseRow) => holders[0]?.sinceMs || waiters[0]?.sinceMs || 0;

const whyOf = (row: UseRow) => row.problem ?? (row.holders[0] === undefined ? "" : personWhyText(row.holders[0]));

/** Columns of locks, elections and barriers. */
function useColumns(words: { readonly holder: string; readonly waiting: string }): readonly TableColumn<UseRow>[] {
  return [
    nameColumn(),
    {
      id: "holder",
      head: words.holder,
      text: ({ holders }) => holders.map(personText).join(" "),
      cell: ({ holders, holding }) => <PeopleSummary people={holders} count={holding} />,
    },
    {
      id: "since",
      head: "For",
      text: () => "",
      order: (row) => -sinceOf(row),
      cell: (row) => <AgeText sinceMs={sinceOf(row)} />,
      isNumber: true,
    },
    {
      id: "waiting",
      head: words.waiting,
      text: ({ waiting }) => countText(waiting),
      order: ({ waiting }) => waiting ?? -1,
      isNumber: true,
    },
    { id: "why", head: "Why", text: whyOf, cell: (row) => whyCell(row) },
  ];
}

function whyCell(row: UseRow): ComponentChildren {
  const isBad = row.problem !== null || row.holders.some(({ askedBy }) => askedBy !== null);
  return isBad ? <StateMark kind={row.problem === null ? "warn" : "bad"} text={whyOf(row)} /> : shownText(whyOf(row));
}

export const lockColumns = useColumns({ holder: "Holder", waiting: "Waiting" });
export const electionColumns = useColumns({ holder: "Leader", waiting: "Candidates" });

export const barrierColumns: readonly TableColumn<UseRow>[] = [
  nameColumn(),
  { id: "kind", head: "Kind", text: ({ kind }) => kind },
  {
    id: "inside",
    head: "Inside",
    text: ({ holders }) => holders.map(personText).join(" "),
    cell: ({ holders, holding }) => <PeopleSummary people={holders} count={holding} />,
  },
  {
    id: "waiting",
    head: "Waiting",
    text: ({ waiting, limit }) => `${countText(waiting)}${limit === null ? "" : ` of ${countText(limit)}`}`,
    order: ({ waiting }) => waiting ?? -1,
    isNumber: true,
  },
  {
    id: "since",
    head: "For",
    text: () => "",
    order: (row) => -sinceOf(row),
    cell: (row) => <AgeText sinceMs={sinceOf(row)} />,
    isNumber: true,
  },
  { id: "why", head: "Why", text: whyOf, cell: (row) => whyCell(row) },
];

function numberColumn<Row>(id: string, head: string, number: (row: Row) => number): TableColumn<Row> {
  return { id, head, text: (row) => countText(number(row)), order: number, isNumber: true };
}

export const poolColumns: readonly TableColumn<PoolRow>[] = [
  nameColumn(),
  {
    id: "progress",
    head: "Progress",
    text: () => "",
    order: ({ done, failed, running }) => (done + failed) / Math.max(1, done + failed + running),
    cell: (row) => <PoolProgress row={row} />,
  },
  numberColumn("running", "Running", ({ running }) => running),
  numberColumn("done", "Done", ({ done }) => done),
  {
    ...numberColumn<PoolRow>("failed", "Failed", ({ failed }) => failed),
    cell: ({ failed }) => failed === 0 ? "0" : <StateMark kind="bad" text={countText(failed)} />,
  },
];

/** A tick that has not run for this long is overdue, in milliseconds. */
const overdueMsMin = 60_000;

/** Returns the state of a schedule, in words and as a kind of mark. */
export function tickState({ open, nextMs, runs }: TickRow, now: number): {
  readonly kind: "good" | "warn" | "bad" | "idle";
  readonly text: string;
} {
  if (open !== null) {
    return open.isHeld ? { kind: "good", text: `runs on ${open.host}` } : { kind: "bad", text: `lost on ${open.host}` };
  }
  if (nextMs !== null && nextMs + overdueMsMin < now) return { kind: "bad", text: "overdue" };
  const last = runs.at(-1);
  if (last === undefined) return { kind: "idle", text: "no run yet" };
  const kind = last.result === "done" ? "good" : last.result === "skipped" ? "warn" : "bad";
  return { kind, text: `last ${last.result}` };
}

export const tickColumns: readonly TableColumn<TickRow>[] = [
  nameColumn(),
  { id: "schedule", head: "Schedule", text: ({ schedule, zone }) => `${schedule} (${zone})` },
  {
    id: "state",
    head: "State",
    text: (row) => tickState(row, programNowMinuteMs.value).text,
    cell: (row) => {
      const { kind, text } = tickState(row, programNowMinuteMs.value);
      return <StateMark kind={kind} text={text} />;
    },
  },
  {
    id: "line",
    head: `Last ${timeLineMs / 3_600_000} hours`,
    text: () => "",
    order: ({ runs }) => runs.at(-1)?.tickMs ?? 0,
    cell: (row) => <TickTimeLine row={row} />,
  },
  {
    id: "next",
    head: "Next",
    text: () => "",
    order: ({ nextMs }) => nextMs ?? Infinity,
    cell: ({ nextMs }) => nextMs === null ? "none" : <RelativeTimeText atMs={nextMs} />,
    isNumber: true,
  },
];

export const topicColumns: readonly TableColumn<ShownTopicRow>[] = [
  { id: "topic", head: "Topic", text: ({ topic }) => topic },
  { id: "server", head: "Owner", text: ({ server }) => server },
  {
    id: "state",
    head: "State",
    text: ({ state }) => state,
    cell: ({ state }) => (
      <StateMark kind={state === "offline" ? "bad" : state === "stored" ? "good" : "warn"} text={state} />
    ),
  },
  numberColumn("epoch", "Epoch", ({ epoch }) => epoch),
];

export const storeColumns: readonly TableColumn<StoreRow>[] = [
  nameColumn(),
  numberColumn("waiting", "Waiting", ({ waiting }) => waiting),
  numberColumn("flight", "In flight", ({ inFlight }) => inFlight),
  {
    ...numberColumn<StoreRow>("dead", "Dead letters", ({ dead }) => dead),
    cell: ({ dead }) => dead === 0 ? "0" : <StateMark kind="bad" text={countText(dead)} />,
  },
  numberColumn("done", "Done", ({ done }) => done),
  {
    id: "rate",
    head: "Rate",
    text: ({ rate }) => rate === null ? "-" : `${rate}/s`,
    order: ({ rate }) => rate ?? -1,
    isNumber: true,
  },
  {
    id: "oldest",
    head: "Oldest",
    text: () => "",
    order: ({ oldestMs }) => -(oldestMs ?? Infinity),
    cell: ({ oldestMs }) => oldestMs === null ? "-" : <AgeText sinceMs={oldestMs} />,
    isNumber: true,
  },
  {
    id: "next",
    head: "Next try",
    text: ({ isPaused }) => isPaused ? "paused" : "",
    order: ({ nextMs }) => nextMs ?? Infinity,
    cell: ({ isPaused, nextMs }) =>
      isPaused ? <StateMark kind="warn" text="paused" /> : nextMs === null ? "-" : <RelativeTimeText atMs={nextMs} />,
  },
];

export const serverColumns: readonly TableColumn<ServerRow>[] = [
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
  numberColumn("topics", "Topics", ({ topics }) => topics),
];

const numbersText = (numbers: Readonly<Record<string, number>>, unit = "") =>
  Object.entries(numbers).map(([what, number]) => `${what} ${countText(number)}${unit}`).join(", ");

export const processColumns: readonly TableColumn<MetricsRow>[] = [
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
];

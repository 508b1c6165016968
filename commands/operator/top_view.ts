/** Turns a reading and the user's choices into the lines of `baton top`. Pure. */
import { nameOfHolder } from "../../src/coordination/nodes/holder_info.ts";
import { formatClockTime } from "../../src/base/schedule/local_zone.ts";
import { formatPassedTime } from "../../src/base/support/duration.ts";
import { countWithNoun, printable } from "../../src/base/support/text.ts";
import type { TextPainter, TextStyle } from "../../src/base/terminal/color.ts";
import { formatTableLines, type TableCell, tableHeadCells } from "../../src/base/terminal/table.ts";
import { wrapText } from "../../src/base/terminal/text_width.ts";
import type { TerminalSize } from "../../src/base/terminal/terminal_lines.ts";
import { pubsubServersTable, pubsubTopicsTable } from "../pubsub/overview_tables.ts";
import type { TopBodySize, TopUiState } from "./top_keys.ts";
import type { TopProcess, TopRates, TopReading, TopStore, TopUse } from "./top_reading.ts";

export interface TopFrame {
  readonly reading: TopReading;
  readonly rates: TopRates;
  readonly ui: TopUiState;
  /** Wall clock, in milliseconds. */
  readonly nowMs: number;
  /** A message below the title, such as that no server responds; may be empty. */
  readonly message: string;
}

interface ViewOptions {
  readonly size: TerminalSize;
  readonly paint: TextPainter;
}

const helpLines = [
  "up, down, page up, page down, home, end    scroll (also j, k, g, G and the wheel)",
  "s                                          next order: kind, name, hold, wait, age",
  "r                                          reverse the order",
  "/                                          show only rows with a text; enter keeps it, escape shows all",
  "space                                      read again now",
  "q                                          end",
];

/** Returns exactly as many lines as the screen has rows, and the size of the part that scrolls. */
export function topScreen(
  frame: TopFrame,
  { size, paint }: ViewOptions,
): { readonly lines: string[]; readonly body: TopBodySize } {
  const { ui, message } = frame;
  const body = ui.isHelp ? helpLines.map((text) => ({ text, head: "" })) : topBody(frame, paint, size.columns);
  const room = Math.max(1, size.rows - 4);
  const offset = Math.max(0, Math.min(ui.offset, body.length - room));
  const shown = body.slice(offset, offset + room);
  const end = offset + shown.length;
  const place = body.length <= room ? "" : `lines ${offset + 1} to ${end} of ${body.length}`;
  const filter = ui.isTyping
    ? `filter: ${printable(ui.filter)}_`
    : ui.filter === ""
    ? ""
    : `filter: ${printable(ui.filter)}`;
  const order = ui.sort === "kind" && !ui.isReversed ? "" : `order: ${ui.sort}${ui.isReversed ? ", reversed" : ""}`;
  const keys = "q quit  s order  r reverse  / filter  ? help";
  return {
    lines: [
      titleLine(frame, paint),
      message === ""
        ? [filter, order, place].filter((part) => part !== "").join("  ")
        : paint("red", printable(message)),
      shown[0]?.head ?? "",
      ...shown.map(({ text }) => text),
      ...Array.from({ length: room - shown.length }, () => ""),
      paint("dim", keys),
    ].slice(0, Math.max(1, size.rows)),
    body: { lines: body.length, room },
  };
}

/** Returns all lines, for --once. */
export function topText(frame: TopFrame, paint: TextPainter): string[] {
  return [titleLine(frame, paint), "", ...topBody(frame, paint).map(({ text }) => text)];
}

function titleLine({ reading, nowMs }: TopFrame, paint: TextPainter): string {
  const { uses, topics, stores, servers, root } = reading;
  const locks = uses.filter(({ kind }) => kind !== "pool"); // the jobs of a pool hold locks
  const held = locks.reduce((sum, { holders }) => sum + (holders ?? 0), 0);
  const waiting = locks.reduce((sum, { waiters }) => sum + (waiters ?? 0), 0);
  const counts = [
    `${countWithNoun(held, "holder")}, ${waiting} waiting`,
    ...(topics.length === 0 ? [] : [countWithNoun(topics.length, "topic")]),
    ...(stores.length === 0 ? [] : [countWithNoun(stores.length, "message store")]),
  ];
  const time = formatClockTime(nowMs);
  return `${paint("bold", "baton top")}  ${time}  ${printable(servers)} ${printable(root)}  ${counts.join("  ")}`;
}

interface BodyLine {
  readonly text: string;
  /**
   * The heading of the row's section, which stays on the screen when the section scrolls; empty for a heading itself.
   */
  readonly head: string;
}

/** Returns all sections that have rows, with an empty line between them. */
function topBody(frame: TopFrame, paint: TextPainter, columnsMax?: number): BodyLine[] {
  const { reading, ui } = frame;
  const sections = [
    usesTable(frame),
    pubsubServersTable(reading.pubsubServers),
    pubsubTopicsTable(reading.topics),
    storesTable(frame),
    processesTable(frame),
  ]
    .map(([head, ...rows]) => ({ head: head ?? [], rows: rows.filter((row) => matches(row, ui.filter)) }))
    .filter(({ rows }) => rows.length > 0)
    .map(({ head, rows }) => formatTableLines([head, ...rows], paint, columnsMax))
    .map((lines) => lines.map((text, index): BodyLine => ({ text, head: index === 0 ? "" : lines[0] ?? "" })));
  const nothing = ui.filter === "" ? `nothing is in use below ${reading.root}` : `no row has "${ui.filter}"`;
  if (sections.length === 0) sections.push([{ text: printable(nothing), head: "" }]);
  const problems = reading.problems.flatMap((problem) => wrapText(printable(problem), columnsMax))
    .map((text): BodyLine => ({ text: paint("red", text), head: "" }));
  if (problems.length > 0) sections.push(problems);
  return sections.flatMap((lines, index) => index === 0 ? lines : [{ text: "", head: "" }, ...lines]);
}

const textOf = (cell: TableCell) => typeof cell === "string" ? cell : cell.text;

function matches(row: readonly TableCell[], filter: string): boolean {
  if (filter === "") return true;
  const wanted = filter.toLowerCase();
  return row.some((cell) => textOf(cell).toLowerCase().includes(wanted));
}

const ageMs = ({ holder, next }: TopUse, nowMs: number) => {
  const since = holder?.sinceMs || next?.sinceMs || 0;
  return since === 0 ? -1 : Math.max(0, nowMs - since);
};

/** Sorts the rows as the user chose. Equal rows stay in the order of kind and name. */
function sortedUses({ reading: { uses }, ui, nowMs }: TopFrame): TopUse[] {
  const compare: Readonly<Record<TopUiState["sort"], (a: TopUse, b: TopUse) => number>> = {
    kind: () => 0,
    name: (a, b) => a.name < b.name ? -1 : a.name > b.name ? 1 : 0,
    hold: (a, b) => (b.holders ?? 0) - (a.holders ?? 0),
    wait: (a, b) => (b.waiters ?? 0) - (a.waiters ?? 0),
    age: (a, b) => ageMs(b, nowMs) - ageMs(a, nowMs),
  };
  const sorted = [...uses].sort(compare[ui.sort]);
  return ui.isReversed ? sorted.reverse() : sorted;
}

function usesTable(frame: TopFrame): TableCell[][] {
  return [
    tableHeadCells(["KIND", "NAME", "HOLD", "WAIT", "HOLDER", "FOR", "TOKEN", "REASON"]),
    ...sortedUses(frame).map((use) => useRow(use, frame.nowMs)),
  ];
}

function useRow(use: TopUse, nowMs: number): TableCell[] {
  const { kind, name, holders, waiters, holder } = use;
  const count = (number: number | null, style: TextStyle): TableCell =>
    number === 0 ? "0" : { text: String(number ?? "?"), style };
  const age = ageMs(use, nowMs);
  const value = holder?.value ?? "";
  const isAsked = holder !== null && holder.revoke !== null;
  const asked = isAsked ? ["asked to release it"] : [];
  return [
    kind,
    name,
    count(holders, isAsked ? "red" : "green"),
    count(waiters, "yellow"),
    holder === null ? "-" : nameOfHolder(holder),
    age < 0 ? "-" : formatPassedTime(age),
    holder?.fencingToken?.toString() ?? "-",
    [value, holder?.reason ?? "", ...asked].filter((text) => text !== "").join(", "),
  ];
}

function storesTable({ reading: { stores }, rates, nowMs }: TopFrame): TableCell[][] {
  return [
    tableHeadCells(["STORE", "WAITING", "IN FLIGHT", "DEAD", "DONE", "RATE", "OLDEST", "NEXT TRY"]),
    ...stores.map((store): TableCell[] => storeRow(store, rates.stores.get(store.folder), nowMs)),
  ];
}

function storeRow(store: TopStore, rate: number | undefined, nowMs: number): TableCell[] {
  const { name, isPaused, waiting, inFlight, dead, done, oldestMs, nextMs } = store;
  const next = nextMs === null ? "-" : nextMs <= nowMs ? "due" : `in ${formatPassedTime(nextMs - nowMs)}`;
  return [
    name,
    String(waiting),
    String(inFlight),
    dead === 0 ? "0" : { text: String(dead), style: "red" },
    String(done),
    rateText(rate),
    oldestMs === null ? "-" : formatPassedTime(Math.max(0, nowMs - oldestMs)),
    isPaused ? { text: "paused", style: "yellow" } : next,
  ];
}

function rateText(perSecond: number | undefined): string {
  if (perSecond === undefined) return "-";
  return `${perSecond >= 10 || perSecond === 0 ? Math.round(perSecond) : Math.round(perSecond * 10) / 10}/s`;
}

function processesTable({ reading: { processes }, rates }: TopFrame): TableCell[][] {
  return [
    tableHeadCells(["PROCESS", "METRICS AT", "RATES", "NOW"]),
    ...processes.map((process) => processRow(process, rates.processes.get(process.address) ?? {})),
  ];
}

function processRow(
  { process, address, error, gauges }: TopProcess,
  rates: Readonly<Record<string, number>>,
): TableCell[] {
  if (process === null) return [{ text: "unreachable", style: "red" }, address, "-", error ?? ""];
  const busy = Object.entries(rates).filter(([, rate]) => rate > 0).sort(([, a], [, b]) => b - a).slice(0, 4);
  return [
    process,
    address,
    busy.map(([what, rate]) => `${rateText(rate)} ${what}`).join(", ") || "-",
    Object.entries(gauges).map(([what, number]) => `${what} ${number}`).join(", "),
  ];
}

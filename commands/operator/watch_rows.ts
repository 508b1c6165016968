/**
 * Shows changes for `--watch` until a signal arrives. On a terminal, draws a table again; elsewhere, prints lines, or
 * JSON lines.
 */
import { followNodeReads } from "../../src/coordination/nodes/follow_reads.ts";
import { StopRequestListener } from "../../src/base/process/supervise/signal_source.ts";
import { type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { formatClockTime, timeZoneWarning } from "../../src/base/schedule/local_zone.ts";
import { type Clock, systemClock } from "../../src/base/support/clock.ts";
import { chooseTextPainter } from "../../src/base/terminal/color.ts";
import { type Io, printableLines, printJson } from "../../src/base/terminal/io.ts";
import { formatTableLines, type TableCell } from "../../src/base/terminal/table.ts";
import { RedrawnTerminalLines, terminalSize } from "../../src/base/terminal/terminal_lines.ts";
import { printable } from "../../src/base/support/text.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import type { CoordinationServers } from "../../src/coordination/connect/coordination_servers.ts";
import type { CoordinationCommandCall } from "../coordination_session.ts";
import { followSessions } from "../follow_sessions.ts";

export const watchSettings = {
  watch: toggleSetting("--watch", {
    help: "show every change until stopped: drawn again on a terminal, as lines elsewhere; --json: one object per line",
  }),
  long: toggleSetting("-l, --long", {
    help: "also user, host, pid, start, token and session of each holder",
  }),
} satisfies SettingTable;

/** Formats a watched value. The functions have no side effects; `nowMs` is the present time of the wall clock. */
export interface WatchedRowsView<T> {
  /** Returns the sentence that is shown if no table has rows. */
  readonly empty: (value: T) => string;
  /** Returns the tables. Tables without rows are not shown. */
  readonly tables: (value: T, nowMs: number) => readonly (readonly (readonly TableCell[])[])[];
  readonly json: (value: T) => unknown;
  /**
   * Returns the part of the JSON that is compared with the previous value. Without this function, all of the JSON is
   * compared.
   */
  readonly comparedJson?: (value: T) => unknown;
  /**
   * Returns one line for each object, by key. Lines that are compared contain no elapsed times, which would always
   * differ.
   */
  readonly lines: (value: T) => ReadonlyMap<string, string>;
  /** Returns the line for an object that is gone. `line` is the last line of that object. */
  readonly gone: (line: string) => string;
}

interface WatchCall extends CoordinationCommandCall {
  readonly values: CoordinationCommandCall["values"] & { readonly json: boolean };
}

/**
 * Shows a value and its changes. Never resolves; rejects with StoppedBySignal or an error. `what` is the subject of
 * messages.
 */
export async function watchRowChanges<T>(
  call: WatchCall,
  read: (zk: ZooKeeper, place: CoordinationServers) => Promise<T>,
  { what, view }: { readonly what: string; readonly view: WatchedRowsView<T> },
): Promise<never> {
  using stop = new StopRequestListener();
  const { signal } = stop;
  const clock = systemClock();
  using output = changeOutput(call, view, { what, clock });
  const following = followSessions(
    { ...call, io: { ...call.io, err: (text) => output.report(printableLines(text)) } },
    (zk, place) => followNodeReads(zk, (zk) => read(zk, place), { signal, clock }),
    { what, signal },
  );
  for await (const value of following) {
    output.show(value);
    await call.io.written("stdout", signal);
  }
  throw signal.reason;
}

interface ChangeOutput<T> extends Disposable {
  show(value: T): void;
  /** Shows a one-line message, such as that no server responds. The next value replaces it. */
  report(message: string): void;
}

/** Warns if the time zone in the variable TZ is unknown, because times are then shown in another zone. */
export function warnOfTimeZone(isQuiet: boolean, io: Io): void {
  const warning = timeZoneWarning(io.env);
  if (warning !== null && !isQuiet) io.err(`baton: warning: ${warning}\n`);
}

function changeOutput<T>(
  { values, io }: WatchCall,
  view: WatchedRowsView<T>,
  { what, clock }: { readonly what: string; readonly clock: Clock },
): ChangeOutput<T> {
  const isScreen = io.stdoutIsTerminal && io.env["TERM"] !== "dumb";
  if (isScreen && !values.json) {
    warnOfTimeZone(values.quiet, io);
    return new ScreenChanges(io, view, { what, clock });
  }
  const show = values.json ? jsonChangePrinter(io, view) : lineChangePrinter(io, view);
  return { show, report: (message) => io.err(message), [Symbol.dispose]() {} };
}

/** Returns a function that prints a value as one JSON line if the value differs from the previous value. */
export function jsonChangePrinter<T>(io: Io, view: WatchedRowsView<T>): (value: T) => void {
  let last = "";
  return (value) => {
    const json = view.json(value);
    const text = JSON.stringify(view.comparedJson?.(value) ?? json);
    if (text !== last) printJson(io, json);
    last = text;
  };
}

/** Returns a function that prints a line with the time for each object that is new, changed or gone. */
export function lineChangePrinter<T>(io: Io, view: WatchedRowsView<T>): (value: T) => void {
  let last: ReadonlyMap<string, string> = new Map();
  return (value) => {
    const lines = view.lines(value);
    const gone = [...last].filter(([key]) => !lines.has(key)).map(([, line]) => view.gone(line));
    const changed = [...lines].filter(([key, line]) => last.get(key) !== line).map(([, line]) => line);
    last = lines;
    const time = new Date().toISOString();
    io.out([...gone, ...changed].map((line) => `${time}  ${printable(line)}\n`).join(""));
  };
}

/** How often the table is drawn again so that elapsed times stay current, in milliseconds. */
const tickMs = 1000;

class ScreenChanges<T> implements ChangeOutput<T> {
  readonly #io: Io;
  readonly #view: WatchedRowsView<T>;
  readonly #what: string;
  readonly #clock: Clock;
  readonly #lines: RedrawnTerminalLines;
  #shown: { readonly value: T } | null = null;
  #message = "";
  #cancelTimer = () => {};

  constructor(io: Io, view: WatchedRowsView<T>, { what, clock }: { readonly what: string; readonly clock: Clock }) {
    this.#io = io;
    this.#view = view;
    this.#what = what;
    this.#clock = clock;
    this.#lines = new RedrawnTerminalLines((text) => io.frame("stdout", text));
  }

  show(value: T): void {
    this.#shown = { value };
    this.#message = "";
    this.#draw();
  }

  /** Shows the message above the table, because a message on stderr would shift the lines that are redrawn. */
  report(message: string): void {
    if (this.#shown === null || !this.#io.stderrIsTerminal) return this.#io.err(message);
    this.#message = message.replace(/^baton: /, "").trim();
    this.#draw();
  }

  [Symbol.dispose](): void {
    this.#cancelTimer();
  }

  #draw(): void {
    this.#cancelTimer();
    if (this.#shown === null) return;
    const { value } = this.#shown;
    const paint = chooseTextPainter(this.#io, "stdout");
    const now = new Date();
    const tables = this.#view.tables(value, now.getTime()).filter((table) => table.length > 0);
    const time = paint("dim", formatClockTime(now.getTime()));
    const { columns } = terminalSize();
    const body = tables.length === 0
      ? [printable(this.#view.empty(value))]
      : tables.flatMap((table, index) => [...index === 0 ? [] : [""], ...formatTableLines(table, paint, columns)]);
    const title = `${paint("bold", printable(this.#what))}  ${time}`;
    const message = this.#message === "" ? [] : [paint("red", printable(this.#message))];
    this.#lines.show([title, ...message, ...body]);
    this.#cancelTimer = this.#clock.startTimer(tickMs, () => {
      try {
        this.#draw();
      } catch {
        // the terminal is gone: SIGHUP, or the next change, ends the command
      }
    });
  }
}

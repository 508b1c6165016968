/** Runs `baton top`: reads at intervals, and redraws after each reading, on each key press, and every second. */
import process from "node:process";
import { restMsAfterNodeRead } from "../../src/coordination/admin/follow_reads.ts";
import { isTransientFailure } from "../../src/coordination/nodes/node_requests.ts";
import { readProcess } from "../../src/base/process/proc/process_table.ts";
import { StoppedBySignal, StopRequest } from "../../src/base/process/supervise/signal_source.ts";
import { onAbort, TaskScope } from "../../src/base/support/abort.ts";
import { type Clock, systemClock } from "../../src/base/support/clock.ts";
import { OneTimeEvent } from "../../src/base/support/event.ts";
import { chooseTextPainter, type TextPainter } from "../../src/base/terminal/color.ts";
import { FullScreen } from "../../src/base/terminal/full_screen.ts";
import { printableLines, printJson } from "../../src/base/terminal/io.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { runInCoordinationSession } from "../coordination_session.ts";
import { followSessions } from "../follow_sessions.ts";
import { warnOfTimeZone } from "./watch_use.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import { topJson } from "./top_json.ts";
import { applyTopKey, initialTopUi, parseTerminalKeys, type TopBodySize, type TopUiState } from "./top_keys.ts";
import type { TopCall } from "./top_options.ts";
import { noTopRates, type TopRates, topRatesBetween, type TopReading } from "./top_reading.ts";
import { TopSources } from "./top_sources.ts";
import { topScreen, topText } from "./top_view.ts";

export async function runTop(call: TopCall): Promise<ExitCode> {
  const { values, io } = call;
  if (!values.json) warnOfTimeZone(values.quiet, io);
  await using sources = new TopSources(call);
  const isLive = !values.once && !values.json && io.stdoutIsTerminal && io.env["TERM"] !== "dumb";
  return isLive ? await runLive(call, sources) : await printOnce(call, sources);
}

const uiOf = ({ values: { sort, filter = "" } }: TopCall): TopUiState => ({ ...initialTopUi, sort, filter });

async function printOnce(call: TopCall, sources: TopSources): Promise<ExitCode> {
  const { values, io } = call;
  const signal = new AbortController().signal;
  const reading = await runInCoordinationSession(call, (zk, place) => sources.read(zk, place.servers, signal));
  if (values.json) printJson(io, topJson(reading));
  else {
    const frame = { reading, rates: noTopRates, ui: uiOf(call), nowMs: reading.atMs, message: "" };
    io.out(topText(frame, chooseTextPainter(io, "stdout")).map((line) => `${line}\n`).join(""));
  }
  return exitCodes.SUCCESS;
}

/** Ends the live screen after the user has pressed `q`. */
class UserQuit extends Error {}

async function runLive(call: TopCall, sources: TopSources): Promise<ExitCode> {
  const clock = systemClock();
  using stop = new StopRequest();
  const end = new AbortController();
  using _stopping = new TaskScope(onAbort(stop.signal, (reason) => end.abort(reason)));
  using screen = new LiveScreen(call, { clock, end: (reason) => end.abort(reason) });
  const { signal } = end;
  const follow = (zk: ZooKeeper, { servers }: { readonly servers: string }) =>
    readPeriodically(() => sources.read(zk, servers, signal), {
      ended: zk.session.ended,
      clock,
      signal,
      everyMs: call.values.interval,
      onLate: (message) => screen.showMessage(message),
      nextWish: () => screen.nextWish(),
    });
  try {
    // As soon as the screen exists, it shows the messages about servers that do not respond.
    const io = { ...call.io, err: (text: string) => screen.showMessage(printableLines(text)) };
    const what = "their response";
    for await (const reading of followSessions({ ...call, io }, follow, { what, signal })) screen.showReading(reading);
    throw signal.reason;
  } catch (thrown) {
    if (thrown instanceof UserQuit) return exitCodes.SUCCESS;
    throw thrown;
  }
}

/** Yields a reading every `everyMs` until the signal aborts. Throws the reason of `ended` when the session ends. */
export async function* readPeriodically<T>(
  read: () => Promise<T>,
  { ended, clock, signal, everyMs, onLate, nextWish }: {
    /** Aborts when the session ends. */
    readonly ended: AbortSignal;
    readonly clock: Clock;
    readonly signal: AbortSignal;
    readonly everyMs: number;
    /** Called with a message if a reading fails for the moment. */
    readonly onLate: (message: string) => void;
    /** Returns an event that is set when the user asks for a reading before the interval is over. */
    readonly nextWish: () => OneTimeEvent;
  },
): AsyncGenerator<T, void, void> {
  while (!signal.aborted) {
    if (ended.aborted) throw ended.reason;
    const startMs = clock.now();
    let restMs = 0;
    try {
      const reading = await read();
      restMs = restMsAfterNodeRead(clock.now() - startMs);
      yield reading;
    } catch (thrown) {
      if (signal.aborted) return;
      if (ended.aborted) throw ended.reason;
      if (!isTransientFailure(thrown)) throw thrown;
      onLate("baton: no server responds; the numbers are old\n");
    }
    const event = nextWish();
    using _wakers = new TaskScope(
      onAbort(signal, event.set),
      onAbort(ended, event.set),
      clock.startTimer(Math.max(everyMs, restMs), event.set),
    );
    await event.wait();
  }
}

/** How often the screen is redrawn so that its times move, in milliseconds. */
const tickMs = 1000;

/** The live screen, which opens with the first reading. Messages before that go to stderr. */
class LiveScreen implements Disposable {
  readonly #call: TopCall;
  readonly #clock: Clock;
  readonly #end: (reason: unknown) => void;
  readonly #paint: TextPainter;
  #screen: FullScreen | null = null;
  #shown: { readonly reading: TopReading; readonly rates: TopRates } | null = null;
  #ui: TopUiState;
  #body: TopBodySize = { lines: 0, room: 0 };
  #message = "";
  #wish = new OneTimeEvent();
  #cancelTick = () => {};

  constructor(call: TopCall, { clock, end }: { readonly clock: Clock; readonly end: (reason: unknown) => void }) {
    this.#call = call;
    this.#clock = clock;
    this.#end = end;
    this.#paint = chooseTextPainter(call.io, "stdout");
    this.#ui = uiOf(call);
  }

  showReading(reading: TopReading): void {
    const rates = this.#shown === null ? noTopRates : topRatesBetween(this.#shown.reading, reading);
    this.#shown = { reading, rates };
    this.#message = "";
    this.#screen ??= new FullScreen(this.#call.io, {
      onInput: (text) => this.#handleInput(text),
      onRedraw: () => this.#draw(),
    });
    this.#draw();
  }

  showMessage(message: string): void {
    if (this.#screen === null) return this.#call.io.err(message);
    this.#message = message.replace(/^baton: /, "").trim();
    this.#draw();
  }

  /** Returns an event that is set when the user asks for a reading now. */
  nextWish(): OneTimeEvent {
    this.#wish = new OneTimeEvent();
    return this.#wish;
  }

  [Symbol.dispose](): void {
    this.#cancelTick();
    this.#screen?.[Symbol.dispose]();
    this.#screen = null;
  }

  #handleInput(text: string): void {
    for (const key of parseTerminalKeys(text)) {
      const { ui, action } = applyTopKey(this.#ui, key, this.#body);
      this.#ui = ui;
      if (action === "quit") return this.#end(new UserQuit());
      if (action === "interrupt") return this.#end(new StoppedBySignal("SIGINT", { isTyped: true }));
      if (action === "suspend") this.#screen?.suspend(suspendTarget());
      if (action === "refresh") this.#wish.set();
    }
    this.#draw();
  }

  /** Ends the program if the terminal is gone. */
  #draw(): void {
    this.#cancelTick();
    if (this.#shown === null || this.#screen === null) return;
    const frame = { ...this.#shown, ui: this.#ui, nowMs: Date.now(), message: this.#message };
    const { lines, body } = topScreen(frame, { size: this.#screen.size, paint: this.#paint });
    this.#body = body;
    this.#ui = { ...this.#ui, offset: Math.max(0, Math.min(this.#ui.offset, body.lines - body.room)) };
    try {
      this.#screen.draw(lines);
    } catch (thrown) {
      return this.#end(thrown);
    }
    this.#cancelTick = this.#clock.startTimer(tickMs, () => this.#draw());
  }
}

/**
 * Returns what ^Z suspends: this process's group, as the terminal would. Group 1 belongs to a container's init, and a
 * signal to -1 would reach every process; then only this process is suspended.
 */
function suspendTarget(): number {
  const group = readProcess(process.pid)?.group ?? 0;
  return group > 1 ? -group : process.pid;
}

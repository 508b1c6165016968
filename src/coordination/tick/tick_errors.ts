/** Errors that tell a caller why it does not get a tick. */
import { BatonError } from "../../base/errors.ts";
import { formatUtcMinute, formatUtcSecond } from "../../base/support/instant.ts";
import type { HistoryRecord } from "../history/history_record.ts";
import type { TickCalendar, TickProgress } from "./tick_decision.ts";

/** Thrown if a call is a little early: the next tick, or the next try of the last tick, begins at `atMs`. */
export class TickIsNearError extends Error {
  /** The servers' time. */
  readonly atMs: number;
  readonly waitMs: number;
  readonly nextTickMs: number;

  constructor(atMs: number, { nowMs, nextTickMs }: { readonly nowMs: number; readonly nextTickMs: number }) {
    super(`The next tick begins in ${atMs - nowMs} ms`);
    this.atMs = atMs;
    this.waitMs = atMs - nowMs;
    this.nextTickMs = nextTickMs;
  }
}

/** Thrown if there is no tick for this call. The code is TICK_DONE_ELSEWHERE or TICK_NOT_DUE. */
export class NoTickForCallError extends BatonError {
  /** True if a try is running or may be repeated. A later call may then have to take it. */
  readonly isOpen: boolean;
  /** The servers' time from which the next try may begin; null if it is not known. */
  readonly againMs: number | null;

  constructor(
    code: "TICK_DONE_ELSEWHERE" | "TICK_NOT_DUE",
    message: string,
    { isOpen, againMs }: Pick<NoTickForCallError, "isOpen" | "againMs">,
  ) {
    super(code, message);
    this.isOpen = isOpen;
    this.againMs = againMs;
  }
}

/** Thrown if the lock was busy when a tick was due. The tick is then recorded as skipped. */
export class LockBusyAtTickError extends Error {
  readonly tick: string;

  constructor(tick: string) {
    super(`The tick ${tick} is skipped: the lock is busy`);
    this.tick = tick;
  }
}

/** Returns an error that says that no tick is due, and how the last tick ended. */
export function tickSettledError(
  subject: string,
  { calendar, state, records, nowMs, isRunning = false, againMs }: {
    readonly calendar: TickCalendar;
    readonly state: TickProgress | null;
    readonly records: readonly HistoryRecord[];
    readonly nowMs: number;
    readonly isRunning?: boolean;
    readonly againMs?: number | null;
  },
): NoTickForCallError {
  const last = calendar.last(nowMs);
  const next = calendar.next(nowMs);
  const isOpen = state !== null && (state.open !== null || state.retry !== null);
  const againAtMs = againMs ?? state?.retry?.fromMs ?? null;
  const when = { isOpen, againMs: againAtMs };
  const again = againAtMs === null || againAtMs <= nowMs
    ? ""
    : `; it is tried again from ${formatUtcSecond(againAtMs)} on`;
  const then = `${again}${next === null ? "" : `; the next tick is ${formatUtcMinute(next)}`}`;
  if (state === null || (last !== null && last > state.uptoMs)) {
    const which = last === null ? "there was no tick yet" : `the last tick, ${formatUtcMinute(last)}, is over`;
    return new NoTickForCallError("TICK_NOT_DUE", `${subject} is not due: ${which}${then}`, when);
  }
  const upto = formatUtcMinute(state.uptoMs);
  if (isRunning && state.open !== null) {
    const { host, pid } = state.open;
    const message = `${subject}: the tick ${upto} runs on ${host} (pid ${pid})${then}`;
    return new NoTickForCallError("TICK_DONE_ELSEWHERE", message, when);
  }
  const record = records.findLast(({ tickMs, untilMs }) =>
    tickMs !== null && untilMs !== null && tickMs <= state.uptoMs && state.uptoMs <= untilMs
  );
  const how = record === undefined ? "settled" : `${record.result}${record.host === "" ? "" : ` on ${record.host}`}`;
  return new NoTickForCallError("TICK_DONE_ELSEWHERE", `${subject}: the tick ${upto} is ${how}${then}`, when);
}

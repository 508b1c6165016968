/** Schedules of tests, and their ticks. */
import { Schedule } from "../../src/base/schedule/schedule.ts";

/** A tick every `periodMs`, which may be less than a minute. `written` gives it its id. */
export function every(periodMs: number, written = "* * * * *"): Schedule {
  const last = (atMs: number) => Math.floor(atMs / periodMs) * periodMs;
  const next = (afterMs: number) => last(afterMs) + periodMs;
  const count = (fromMs: number, toMs: number) => Math.max(0, (last(toMs) - last(fromMs)) / periodMs);
  return Object.assign(new Schedule(written, "UTC"), { last, next, count });
}

/** The ticks after `fromMs`, up to and including `toMs`, in order. */
export function ticksBetween(schedule: Pick<Schedule, "next">, fromMs: number, toMs: number): number[] {
  const ticks: number[] = [];
  for (let at = schedule.next(fromMs); at !== null && at <= toMs; at = schedule.next(at)) ticks.push(at);
  return ticks;
}

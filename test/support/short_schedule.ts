/** A schedule with ticks that are closer than a minute. */
import { Schedule } from "../../src/schedule/schedule.ts";

/** A tick every `periodMs`. `written` gives it its id. */
export function every(periodMs: number, written = "* * * * *"): Schedule {
  const last = (atMs: number) => Math.floor(atMs / periodMs) * periodMs;
  const next = (afterMs: number) => last(afterMs) + periodMs;
  const between = (fromMs: number, toMs: number) => {
    const ticks: number[] = [];
    for (let at = next(fromMs); at <= toMs; at += periodMs) ticks.push(at);
    return ticks;
  };
  return Object.assign(new Schedule(written, "UTC"), { last, next, between });
}

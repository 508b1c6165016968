/** Times of a schedule in the form of crontab(5), in the time zone of this machine. The only import of croner. */
import { Cron } from "croner";
import { BatonError, messageOf } from "../../errors.ts";

/**
 * Returns a function that gives the first time after another one, in milliseconds of the wall clock; null: there is none. `written` has
 * five fields, or six with seconds first. Throws USAGE.
 */
export function parseCron(written: string, timeZone?: string): (afterMs: number) => number | null {
  const refuse = (why: string, cause?: unknown): never => {
    const wanted = "five fields as in crontab(5), such as '*/5 * * * *'";
    throw new BatonError("USAGE", `"${written}" is not a schedule: use ${wanted}${why}`, { cause });
  };
  let cron: Cron;
  try {
    cron = new Cron(written, { paused: true, ...(timeZone === undefined ? {} : { timezone: timeZone }) });
  } catch (error) {
    return refuse(`; ${messageOf(error)}`, error);
  }
  const next = (afterMs: number) => cron.nextRun(new Date(afterMs))?.getTime() ?? null;
  if (next(Date.now()) === null) return refuse("; this schedule has no time in the future");
  return next;
}

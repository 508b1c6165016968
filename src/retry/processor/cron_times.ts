/** The times of a schedule as crontab(5) writes it, in this machine's time zone. The only import of croner. */
import { Cron } from "croner";
import { BatonError, messageOf } from "../../errors.ts";

/**
 * Gives the first time after another, in milliseconds of the wall clock; null: there is none. Five fields, or six with the seconds
 * in front. Throws USAGE.
 */
export function cronTimes(written: string, timeZone?: string): (afterMs: number) => number | null {
  const refuse = (why: string, cause?: unknown): never => {
    const wanted = "five fields as in crontab(5), such as '*/5 * * * *'";
    throw new BatonError("USAGE", `"${written}" is no schedule: write ${wanted}${why}`, { cause });
  };
  let cron: Cron;
  try {
    cron = new Cron(written, { paused: true, ...(timeZone === undefined ? {} : { timezone: timeZone }) });
  } catch (error) {
    return refuse(`; ${messageOf(error)}`, error);
  }
  const next = (afterMs: number) => cron.nextRun(new Date(afterMs))?.getTime() ?? null;
  if (next(Date.now()) === null) return refuse("; that one never comes");
  return next;
}

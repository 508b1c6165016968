/** Tells of servers that grant a longer session timeout than was asked for. Pure. */
import { duration } from "../../config/value_types.ts";
import { formatDuration } from "../../support/duration.ts";

/**
 * A sentence with a line's end, or null when there is nothing to tell. The shortest session timeout of an ensemble is two
 * of its ticks, unless it was told otherwise, so that what it grants tells the tick; docs/limits.md says what that should be.
 */
export function sessionTimeoutWarning({ askedMs, grantedMs, standsAlone }: {
  readonly askedMs: number;
  readonly grantedMs: number;
  /** One server behind a unix socket: its tick is of no importance. */
  readonly standsAlone: boolean;
}): string | null {
  if (grantedMs <= askedMs) return null;
  const [asked, granted] = [formatDuration(askedMs), formatDuration(grantedMs)];
  const what = `baton: a session timeout of ${asked} was asked for, and the shortest one to be had is ${granted}`;
  if (standsAlone) return `${what}; ask for that with --session-timeout, or give the keeper a lower minimum\n`;
  const tick = `tickTime is then ${
    formatDuration(grantedMs / 2)
  }, and should be a fifth of the session timeout at most`;
  const lower = formatDuration(Math.floor(askedMs / 5));
  return `${what}; with ZooKeeper's own minimum of two ticks the servers' ${tick}: ask for --session-timeout ` +
    `${duration().format(Math.ceil(grantedMs * 5 / 2))}, or set tickTime to ${lower} (docs/limits.md)\n`;
}

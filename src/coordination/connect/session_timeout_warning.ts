/** Warning about servers that grant a longer session timeout than requested. Pure. */
import { duration } from "../../config/value_types.ts";
import { formatDuration } from "../../support/duration.ts";

/**
 * Returns the warning with a line feed, or null. By default the minimum session timeout of an ensemble is two ticks, so that
 * the granted timeout shows the tick; docs/limits.md recommends a value.
 */
export function sessionTimeoutWarning({ askedMs, grantedMs, isStandalone }: {
  readonly askedMs: number;
  readonly grantedMs: number;
  /** True for a single server behind a unix socket, where the tick does not matter. */
  readonly isStandalone: boolean;
}): string | null {
  if (grantedMs <= askedMs) return null;
  const [asked, granted] = [formatDuration(askedMs), formatDuration(grantedMs)];
  const what = `baton: requested a session timeout of ${asked}, but the minimum of the servers is ${granted}`;
  if (isStandalone) return `${what}; set --session-timeout to that, or give the keeper a lower minimum\n`;
  const tick = `tickTime is then ${
    formatDuration(grantedMs / 2)
  }, and should be at most a fifth of the session timeout`;
  const lower = formatDuration(Math.floor(askedMs / 5));
  return `${what}; with ZooKeeper's default minimum of two ticks the servers' ${tick}: use --session-timeout ` +
    `${duration().format(Math.ceil(grantedMs * 5 / 2))}, or set tickTime to ${lower} (docs/limits.md)\n`;
}

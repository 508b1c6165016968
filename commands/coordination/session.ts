/** The session of a command that waits and holds: how long it may take to open, when another one follows, how it ends. */
import type { Io } from "../../src/cli/io.ts";
import type { ConnectOptions } from "../../src/clients/zookeeper/client.ts";
import type { ZooKeeper } from "../../src/clients/zookeeper/zookeeper.ts";
import type { Clock } from "../../src/support/clock.ts";
import { deadlineAfter } from "../../src/support/deadline.ts";
import type { Coordination } from "./coordination.ts";
import { sessionTimeoutWarning } from "./session_timeout_warning.ts";

/** How long a baton that was told to stop may take to leave the queue, in milliseconds. */
const leaveMsMax = 900;

/** The wait goes on while another session is opened, and so does its limit. */
export function connectWithin(connect: ConnectOptions, leftMs: number): ConnectOptions {
  if (leftMs === Infinity) return connect;
  return { ...connect, connectTimeoutMs: Math.max(1, Math.min(connect.connectTimeoutMs ?? Infinity, leftMs)) };
}

/**
 * The end of the session gives back everything at once: the locks, the places in queues. The command's own ending counts
 * whatever becomes of it, because a session whose end was not heard of expires.
 */
export async function closeSession(zk: ZooKeeper, clock: Clock, stop: AbortSignal): Promise<void> {
  if (!stop.aborted) return await zk.close().catch(() => {});
  const deadline = deadlineAfter(clock, leaveMsMax, { reason: () => null });
  const tooLate = new Promise<void>((resolve) => deadline.signal.addEventListener("abort", () => resolve()));
  await Promise.race([zk.close().catch(() => {}), tooLate]);
  deadline.cancel();
}

/** A line on stderr when the servers grant a longer session timeout than was asked for. */
export function warnOfTimeout(
  { values, quiet }: { readonly values: { readonly sessionTimeout: number }; readonly quiet: boolean },
  io: Io,
  { place, zk }: { readonly place: Coordination; readonly zk: ZooKeeper },
): void {
  const warning = sessionTimeoutWarning({
    askedMs: values.sessionTimeout,
    grantedMs: zk.session.timeoutMs,
    standsAlone: place.servers.startsWith("unix:"),
  });
  if (warning !== null && !quiet) io.err(warning);
}

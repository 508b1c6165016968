/** The session of a command that waits and holds: how long the call may wait, when another session follows, how it ends. */
import type { Io } from "../../terminal/io.ts";
import { type ConnectOptions, connectTimeoutMsDefault } from "../../zookeeper/zookeeper_client.ts";
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { onAbort } from "../../support/abort.ts";
import type { Clock } from "../../support/clock.ts";
import { type Deadline, waitLimit, WaitTimeout } from "../../support/deadline.ts";
import { formatDuration } from "../../support/duration.ts";
import type { Coordination } from "./coordination_servers.ts";
import { sessionTimeoutWarning } from "./session_timeout_warning.ts";

/**
 * How long the end of a session may take: after a signal, with what the recipe has taken to leave less than a second, and
 * after a wait that is over. Milliseconds.
 */
const closeMsMax = { stopped: 300, late: 50 };

interface ConnectLimits {
  readonly connectTimeout: number | undefined;
  readonly connectRetries: number | undefined;
}

/**
 * The limit of a call, from its beginning: connecting and waiting take the same signal. 0 is a try, which waits for nothing
 * but an answer, and for that as long as it looks for a server. Never by time when `waitMs` is undefined.
 */
export function callLimit(
  clock: Clock,
  waitMs: number | undefined,
  { values, stop }: { readonly values: ConnectLimits; readonly stop?: AbortSignal },
): Deadline {
  const limitMs = waitMs === 0 ? values.connectTimeout ?? connectTimeoutMsDefault : waitMs;
  return waitLimit(clock, limitMs, { signal: stop });
}

/** Who says how long to wait, and not how long to look for a server, wants to wait for one too. */
export function waitsForServer(waitMs: number | undefined, { connectTimeout, connectRetries }: ConnectLimits): boolean {
  return waitMs !== undefined && waitMs > 0 && connectTimeout === undefined && connectRetries === undefined;
}

/** Until the options' signal aborts, however long no server is there; says on stderr that none is. */
export async function openPatiently(
  connect: (options: ConnectOptions) => Promise<ZooKeeper>,
  options: ConnectOptions,
  { io, clock, quiet, what }: {
    readonly io: Io;
    readonly clock: Clock;
    readonly quiet: boolean;
    /** What is waited for. */
    readonly what: string;
  },
): Promise<ZooKeeper> {
  const { retries: _retries, ...others } = options;
  const afterMs = options.connectTimeoutMs ?? connectTimeoutMsDefault;
  const cancel = clock.after(afterMs, () => {
    if (!quiet) io.err(`baton: no server has answered for ${formatDuration(afterMs)}; still waiting for ${what}\n`);
  });
  try {
    return await connect({ ...others, connectTimeoutMs: Number.MAX_SAFE_INTEGER });
  } finally {
    cancel();
  }
}

/**
 * The end of the session gives back everything at once: the locks, the places in queues. The command's own ending counts
 * whatever becomes of it, because a session whose end was not heard of expires. Not waited for any longer when `stop` aborts.
 */
export async function closeSession(zk: ZooKeeper, clock: Clock, stop: AbortSignal): Promise<void> {
  const tooLate = Promise.withResolvers<void>();
  let cancel = () => {};
  const off = onAbort(stop, (reason) => {
    cancel = clock.after(reason instanceof WaitTimeout ? closeMsMax.late : closeMsMax.stopped, tooLate.resolve);
  });
  await Promise.race([zk.close().catch(() => {}), tooLate.promise]);
  off();
  cancel();
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

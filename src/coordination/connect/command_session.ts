/**
 * The session of a command that waits for a lock and holds it: its deadline, connecting, reports of outages, and
 * closing.
 */
import type { Io } from "../../base/terminal/io.ts";
import { ServerConnectReport } from "../../protocols/zookeeper/connector.ts";
import { connectTimeoutMsDefault, type ZooKeeperConnectOptions } from "../../protocols/zookeeper/zookeeper_client.ts";
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { CleanupScope, onAbort } from "../../base/support/abort.ts";
import type { Clock } from "../../base/support/clock.ts";
import { type Deadline, startCallDeadline, WaitTimeout } from "../../base/support/deadline.ts";
import { formatDuration } from "../../base/support/duration.ts";
import type { CoordinationServers } from "./coordination_servers.ts";
import { durationType } from "../../base/config/value_types.ts";
import { OneTimeEvent } from "../../base/support/event.ts";

/** The longest time that closing a session may take, in milliseconds, after a signal and after a timeout. */
const closeMsMax = { stopped: 300, late: 50 };

/** The time in milliseconds after which a call reports that no server responds. */
const noticeMs = 2000;

interface ConnectLimits {
  readonly connectTimeout: number | undefined;
  readonly connectRetries: number | undefined;
}

/**
 * Returns the deadline of a call, which limits connecting and waiting together. If `waitMs` is 0, the call waits only
 * for a response, and at most for the connect timeout. If it is undefined, there is no limit.
 */
export function connectAndWaitDeadline(
  clock: Clock,
  waitMs: number | undefined,
  { values, stop, moreMs = 0 }: {
    readonly values: ConnectLimits;
    readonly stop?: AbortSignal;
    /** Milliseconds added to the limit of a call that waits only for a response. */
    readonly moreMs?: number;
  },
): Deadline {
  const limitMs = waitMs === 0 ? (values.connectTimeout ?? connectTimeoutMsDefault) + moreMs : waitMs;
  return startCallDeadline(clock, limitMs, { signal: stop });
}

/**
 * Returns true if the user has limited the wait, but not connecting. The limit of the wait then includes waiting for a
 * server.
 */
export function waitIncludesConnecting(
  waitMs: number | undefined,
  { connectTimeout, connectRetries }: ConnectLimits,
): boolean {
  return waitMs !== undefined && waitMs > 0 && connectTimeout === undefined && connectRetries === undefined;
}

/**
 * Connects, and reports on stderr when no server responds or a server is slow. If `isPatient` is true, retries until
 * the signal of the options aborts.
 */
export async function openCoordinationSession(
  connect: (options: ZooKeeperConnectOptions) => Promise<ZooKeeper>,
  options: ZooKeeperConnectOptions,
  { isPatient, io, clock, quiet, what }: {
    readonly isPatient: boolean;
    readonly io: Io;
    readonly clock: Clock;
    readonly quiet: boolean;
    /** The object of the wait, for messages. Empty if the command can do nothing without the servers. */
    readonly what: string;
  },
): Promise<ZooKeeper> {
  const goal = what === "" ? "still trying" : `still waiting for ${what}`;
  const say = (sentence: string) => quiet || io.err(`baton: ${sentence}\n`);
  const { retries: _retries, ...others } = options;
  const limits = isPatient ? { ...others, connectTimeoutMs: Number.MAX_SAFE_INTEGER } : options;
  return await connectAndReportDelay(connect, { onSlow: say, ...limits }, { clock, say, goal });
}

/** Connects, and reports if no server has responded for 2 s. */
export async function connectAndReportDelay(
  connect: (options: ZooKeeperConnectOptions) => Promise<ZooKeeper>,
  options: ZooKeeperConnectOptions,
  { clock, say, goal = "still trying" }: {
    readonly clock: Clock;
    readonly say: (sentence: string) => void;
    readonly goal?: string;
  },
): Promise<ZooKeeper> {
  const report = new ServerConnectReport();
  using _notice = new CleanupScope(clock.startTimer(noticeMs, () => {
    const why = report.describe(clock.now()) || "no address was found for their names";
    say(`no server has responded for ${formatDuration(noticeMs)} (${why}); ${goal}`);
  }));
  return await connect({ ...options, report });
}

/**
 * Closes the session, which releases all its locks and places in queues. Ignores failures, because a session that was
 * not closed expires. After `stop` aborts, waits only a short time.
 */
export async function closeCoordinationSession(zk: ZooKeeper, clock: Clock, stop: AbortSignal): Promise<void> {
  const tooLate = new OneTimeEvent();
  using limit = new CleanupScope();
  limit.add(onAbort(stop, (reason) => {
    limit.add(clock.startTimer(reason instanceof WaitTimeout ? closeMsMax.late : closeMsMax.stopped, tooLate.set));
  }));
  await Promise.race([zk.close().catch(() => {}), tooLate.wait()]);
}

/** Reports each outage of the servers once. The user then does not take an outage for a busy lock. */
export function reportServerOutages(
  zk: ZooKeeper,
  what: string,
  { io, clock, quiet }: { readonly io: Io; readonly clock: Clock; readonly quiet: boolean },
): Disposable {
  const { session } = zk;
  let cancel = () => {};
  const off = session.subscribe((change) => {
    if (change !== "state" || quiet) return;
    cancel();
    if (session.state !== "connecting") return;
    cancel = clock.startTimer(session.timeoutMs, () => {
      const reason = session.describeOutage();
      io.err(
        `baton: no server has responded for ${formatDuration(session.timeoutMs)}${reason}; still waiting for ${what}\n`,
      );
    });
  });
  return {
    [Symbol.dispose]() {
      cancel();
      off();
    },
  };
}

/** Prints a warning if the servers grant a longer session timeout than requested. */
export function warnOfLongSessionTimeout(
  { values, quiet }: { readonly values: { readonly sessionTimeout: number }; readonly quiet: boolean },
  io: Io,
  { place, zk }: { readonly place: CoordinationServers; readonly zk: ZooKeeper },
): void {
  const warning = longSessionTimeoutWarning({
    askedMs: values.sessionTimeout,
    grantedMs: zk.session.timeoutMs,
    isStandalone: place.servers.startsWith("unix:"),
  });
  if (warning !== null && !quiet) io.err(warning);
}

/**
 * Returns the warning with a line feed, or null. By default, the minimum session timeout of an ensemble is two ticks,
 * so the granted timeout reveals the tick. docs/limits.md recommends a value for the tick.
 */
export function longSessionTimeoutWarning({ askedMs, grantedMs, isStandalone }: {
  readonly askedMs: number;
  readonly grantedMs: number;
  /** True for a single server behind a unix socket, for which the tick does not matter. */
  readonly isStandalone: boolean;
}): string | null {
  if (grantedMs <= askedMs) return null;
  const asked = formatDuration(askedMs);
  const granted = formatDuration(grantedMs);
  const what = `baton: requested a session timeout of ${asked}, but the minimum of the servers is ${granted}`;
  if (isStandalone) return `${what}; set --session-timeout to that, or give the keeper a lower minimum\n`;
  const tick = formatDuration(grantedMs / 2);
  const lower = formatDuration(Math.floor(askedMs / 5));
  return `${what}; with ZooKeeper's default minimum of two ticks the servers' tickTime is then ${tick}, and should ` +
    "be at most a fifth of the session timeout: use --session-timeout " +
    `${durationType().format(Math.ceil(grantedMs * 5 / 2))}, or set tickTime to ${lower} (docs/limits.md)\n`;
}

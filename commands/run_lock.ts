/** What `baton lock` does, from its options to an exit code: connect, wait, run the command, give back, report. */
import type { ChildEnding, ChildOutcome } from "../src/cli/child/child_outcome.ts";
import { processSignals, type SignalSource } from "../src/cli/child/signal_source.ts";
import { superviseChild, type SuperviseOptions } from "../src/cli/child/supervise_child.ts";
import type { Guard } from "../src/cli/guard/guard.ts";
import type { Io } from "../src/cli/io.ts";
import { type StatusReport, StatusWriter } from "../src/cli/status_report.ts";
import { StoppedBySignal, StopRequest } from "../src/cli/stopped_by_signal.ts";
import { connect, type ConnectOptions } from "../src/clients/zookeeper/client.ts";
import type { ZooKeeper } from "../src/clients/zookeeper/zookeeper.ts";
import { ZooKeeperError } from "../src/clients/zookeeper/zookeeper_error.ts";
import { BatonError } from "../src/errors.ts";
import type { Lease } from "../src/recipes/lease.ts";
import { LeaseSet } from "../src/recipes/lease_set.ts";
import { type Clock, systemClock } from "../src/support/clock.ts";
import { deadlineAfter } from "../src/support/deadline.ts";
import { type Coordination, coordinationOf, demandScope, reach } from "./coordination.ts";
import { type ExitCode, exitCodeOf } from "./exit_codes.ts";
import { type LockEnding, lockEndingOf } from "./lock_ending.ts";
import { lockEnvironment, secretVariables } from "./lock_environment.ts";
import type { LockOptions } from "./lock_options.ts";
import { sessionTimeoutWarning } from "./session_timeout_warning.ts";
import { type TakeLocks, takeLocks, type TakenLocks } from "./take_locks.ts";

/** What it is made of; tests put something else in their place. */
export interface LockDependencies {
  readonly clock: Clock;
  readonly signals: SignalSource;
  /** Started already; told here when there is nothing to guard. */
  readonly guard: Guard;
  connect(options: ConnectOptions): Promise<ZooKeeper>;
  takeLocks: TakeLocks;
  supervise(options: SuperviseOptions): Promise<ChildOutcome>;
}

export function lockDependencies(guard: Guard): LockDependencies {
  const clock = systemClock();
  return {
    clock,
    guard,
    signals: processSignals(),
    connect: (options) => connect({ ...options, clock }),
    takeLocks,
    supervise: superviseChild,
  };
}

/** How long a baton that was told to stop may take to leave the queue, in milliseconds. */
const leaveMsMax = 900;

/** What is known so far, for the report. */
interface Progress {
  leases: readonly Lease[] | null;
  waitedMs: number | null;
  outcome: ChildOutcome | null;
}

/** Throws BatonError for what ended it before there was a command, StoppedBySignal when a signal did. */
export async function runLock(options: LockOptions, io: Io, deps: LockDependencies): Promise<ExitCode> {
  const { values } = options;
  using status = new StatusWriter({ fd: values.statusFd, file: values.statusFile, inheritedFds: io.inheritedFds });
  const progress: Progress = { leases: null, waitedMs: null, outcome: null };
  const report = (end: Pick<StatusReport, "reason" | "exit_code" | "signal" | "message">) => {
    for (const problem of status.write(reportOf(options, progress, end))) io.err(`baton: ${problem}\n`);
  };
  try {
    const ending = await lockAndRun(options, io, { deps, progress });
    if (ending.message !== null) io.err(`baton: ${ending.message}\n`);
    report({ reason: ending.reason, exit_code: ending.exitCode, signal: null, message: ending.message });
    return ending.exitCode;
  } catch (thrown) {
    if (thrown instanceof StoppedBySignal) {
      report({ reason: "stopped_by_signal", exit_code: null, signal: thrown.signal, message: null });
      throw thrown;
    }
    if (!(thrown instanceof BatonError)) throw thrown;
    const { code, message } = thrown;
    const busy = code === "LOCK_BUSY" || code === "LOCK_TIMEOUT";
    const exitCode = busy ? values.conflictExitCode ?? exitCodeOf(code) : exitCodeOf(code);
    report({ reason: code.toLowerCase(), exit_code: exitCode, signal: null, message });
    if (!busy) throw thrown;
    if (!options.quiet) io.err(`baton: ${message}\n`);
    return exitCode;
  }
}

async function lockAndRun(
  options: LockOptions,
  io: Io,
  { deps, progress }: { deps: LockDependencies; progress: Progress },
): Promise<LockEnding> {
  using stop = new StopRequest(deps.signals);
  let guarded = false;
  let zk: ZooKeeper | null = null;
  try {
    const place = coordinationOf(options.values, options.sources, stop.signal);
    demandScope(options.values.scope, place);
    if (place.assumed && !options.quiet) io.err(scopeLine(options, place));
    const opened = (session: ZooKeeper) => {
      const warning = zk === null && !options.quiet ? timeoutWarning(options, place, session) : null;
      if (warning !== null) io.err(warning);
      zk = session;
    };
    const taken = await takeInSession(options, io, { deps, place, stop: stop.signal, opened });
    progress.leases = taken.leases;
    progress.waitedMs = taken.waitedMs;
    if (options.verbose) io.err(grantLine(taken.leases, taken.waitedMs));
    const lease = leaseOf(taken.leases);
    guarded = true; // from here on supervision says when the guard may go
    const outcome = await deps.supervise({
      ...superviseOptions(options, io, deps),
      lease,
      guard: deps.guard,
      grantedAtMs: taken.grantedAtMs,
      signal: stop.signal,
      env: childEnvironment(options, io, { ...taken, place }),
    });
    progress.outcome = outcome;
    const ending = lockEndingOf(outcome, {
      what: quoted(options.names),
      lost: lease.lost,
      maxHoldMs: options.values.maxHold,
    });
    if (ending === null) throw stop.signal.reason;
    // What could not be killed may still be at it: the session is left to end by itself, after its full time.
    if (outcome.kind === "breach") zk = null;
    return ending;
  } finally {
    if (!guarded) deps.guard.done();
    if (zk !== null) await close(zk, deps.clock, stop.signal);
  }
}

/**
 * A wait outlives its session. One that expired, because no server was there for longer than T, is followed by another,
 * with a place at the end of the queue. `opened` hears of each: the last one is the caller's to close.
 */
async function takeInSession(options: LockOptions, io: Io, { deps, place, stop, opened }: {
  readonly deps: LockDependencies;
  readonly place: Coordination;
  readonly stop: AbortSignal;
  readonly opened: (zk: ZooKeeper) => void;
}): Promise<TakenLocks> {
  const startMs = deps.clock.now();
  for (let sessions = 0;; sessions++) {
    const leftMs = options.waitMs === undefined ? Infinity : options.waitMs - (deps.clock.now() - startMs);
    const zk = await deps.connect(sessions === 0 ? place.connect : connectWithin(place.connect, leftMs));
    opened(zk);
    try {
      return await deps.takeLocks(zk, options, {
        io,
        clock: deps.clock,
        signal: stop,
        acl: place.connect.acl,
        startMs,
      });
    } catch (thrown) {
      if (options.waitMs === 0 || stop.aborted || !isExpiry(zk.session.ended.reason)) throw thrown;
      if (!options.quiet) {
        io.err(
          `baton: the session that waited for ${
            quoted(options.names)
          } has expired; waiting again, as the last in line\n`,
        );
      }
    }
  }
}

/** The wait goes on while another session is opened, and so does its limit. */
function connectWithin(connect: ConnectOptions, leftMs: number): ConnectOptions {
  if (leftMs === Infinity) return connect;
  return { ...connect, connectTimeoutMs: Math.max(1, Math.min(connect.connectTimeoutMs ?? Infinity, leftMs)) };
}

function isExpiry(reason: unknown): boolean {
  return reason instanceof ZooKeeperError && reason.reason === "SESSIONEXPIRED";
}

/**
 * The end of the session gives back everything at once: the locks, the places in queues. The command's own ending counts
 * whatever becomes of it, because a session whose end was not heard of expires.
 */
async function close(zk: ZooKeeper, clock: Clock, stop: AbortSignal): Promise<void> {
  if (!stop.aborted) return await zk.close().catch(() => {});
  const deadline = deadlineAfter(clock, leaveMsMax, { reason: () => null });
  const tooLate = new Promise<void>((resolve) => deadline.signal.addEventListener("abort", () => resolve()));
  await Promise.race([zk.close().catch(() => {}), tooLate]);
  deadline.cancel();
}

function superviseOptions(options: LockOptions, io: Io, deps: LockDependencies) {
  const { values } = options;
  return {
    command: options.command,
    clock: deps.clock,
    signals: deps.signals,
    descriptors: io.inheritedFds,
    killAfterMs: values.killAfter,
    stopSignal: values.signal,
    onDoubt: values.onDoubt,
    maxHoldMs: values.maxHold ?? null,
    minHoldMs: values.minHold ?? null,
    foreground: values.foreground || "auto",
    onEvent: (event) => {
      if (options.verbose) io.err(`baton: ${event.kind}${"reason" in event ? ` (${event.reason})` : ""}\n`);
    },
  } as const satisfies Partial<SuperviseOptions>;
}

function childEnvironment(
  options: LockOptions,
  io: Io,
  { leases, waitedMs, place }: { leases: readonly Lease[]; waitedMs: number; place: Coordination },
): Record<string, string | undefined> {
  const secrets = options.values.passAuth ? [] : secretVariables().map((name) => [name, undefined]);
  return {
    ...Object.fromEntries(secrets),
    ...lockEnvironment({
      leases,
      waitedMs,
      limit: options.limit,
      scope: place.scope,
      servers: place.servers,
      acquiredAt: new Date(),
      outerCookie: io.env["BATON_LOCK_COOKIE"] ?? "",
    }),
  };
}

function leaseOf(leases: readonly [Lease, ...Lease[]]): Lease {
  return leases.length === 1 ? leases[0] : new LeaseSet(leases);
}

function timeoutWarning(options: LockOptions, place: Coordination, { session }: ZooKeeper): string | null {
  return sessionTimeoutWarning({
    askedMs: options.values.sessionTimeout,
    grantedMs: session.timeoutMs,
    standsAlone: place.servers.startsWith("unix:"),
  });
}

function scopeLine(options: LockOptions, place: Coordination): string {
  return `baton: ${quoted(options.names)} excludes ${reach[place.scope]}; --servers names an ensemble for more, ` +
    `--servers embedded says this is meant\n`;
}

function grantLine(leases: readonly Lease[], waitedMs: number): string {
  return leases.map((lease) =>
    `baton: "${lease.name}" is locked after ${Math.round(waitedMs)} ms as ${lease.holderId}, ` +
    `token ${lease.fencingToken}, session timeout ${lease.sessionTimeoutMs} ms\n`
  ).join("");
}

function quoted(names: readonly string[]): string {
  return names.map((name) => JSON.stringify(name)).join(", ");
}

function reportOf(
  options: LockOptions,
  { leases, waitedMs, outcome }: Progress,
  end: Pick<StatusReport, "reason" | "exit_code" | "signal" | "message">,
): StatusReport {
  return {
    version: 1,
    command: "lock",
    names: options.names,
    ...end,
    child: outcome === null ? null : childOf(outcome),
    fencing_tokens: leases?.map((lease) => lease.fencingToken.toString()) ?? null,
    waited_ms: waitedMs === null ? null : Math.round(waitedMs),
    held_ms: outcome === null ? null : Math.round(outcome.heldMs),
  };
}

function childOf(outcome: ChildEnding): StatusReport["child"] {
  switch (outcome.kind) {
    case "exited":
      return { code: outcome.code, signal: null };
    case "signaled":
      return { code: null, signal: outcome.signal };
    case "lost":
    case "revoked":
    case "time_limit":
    case "breach":
      return outcome.child === null ? null : childOf(outcome.child);
    default:
      return null;
  }
}

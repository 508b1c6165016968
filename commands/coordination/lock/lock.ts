/** `baton lock`: waits for the lock, runs the command, releases the lock, and reports. */
import type { ChildOutcome } from "../../../src/base/process/spawn/child_outcome.ts";
import { LeaseNote } from "../../../src/base/process/supervise/lease_note.ts";
import { loadLibc } from "../../../src/base/process/libc.ts";
import { superviseChild, type SuperviseOptions } from "../../../src/base/process/supervise/supervise_child.ts";
import { type Guard, startGuard } from "../../../src/base/process/guard/guard.ts";
import { type Io, sayTo } from "../../../src/base/terminal/io.ts";
import { StopSignalListener } from "../../../src/base/process/supervise/signal_source.ts";
import { formatSessionHandle } from "../../../src/protocols/zookeeper/end_session.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { isSessionEnd } from "../../../src/protocols/zookeeper/zookeeper_error.ts";
import type { Lease } from "../../../src/base/process/lease.ts";
import { announceCoordination } from "../../connected.ts";
import type { Coordination } from "../../../src/coordination/connect/coordination_servers.ts";
import type { ExitCode } from "../../../src/base/exit_codes.ts";
import {
  type JobDependencies,
  jobDependencies,
  jobEnvironment,
  quotedNames,
  superviseOptions,
} from "../../../src/coordination/job/job.ts";
import { decideLockEnding, type LockEnding } from "../../../src/coordination/job/lock_ending.ts";
import { type LockCommandOptions, lockCommandSettings, lockSyntax, readLockOptions } from "./lock_options.ts";
import { ReportFacts, runReported } from "../../../src/coordination/job/reported.ts";
import {
  callDeadline,
  closeSession,
  openSession,
  waitsForServer,
  warnOfTimeout,
} from "../../../src/coordination/connect/command_session.ts";
import { type TakeLocks, takeLocks, type TakenLocks } from "./take_locks.ts";
import { type Call, defineCommand } from "../../command.ts";

export interface LockDependencies extends JobDependencies {
  /** Guard that is already started; it is ended here when there is nothing to guard. */
  readonly guard: Guard;
  takeLocks: TakeLocks;
  supervise(options: SuperviseOptions): Promise<ChildOutcome>;
}

export function lockDependencies(guard: Guard): LockDependencies {
  return { ...jobDependencies(), guard, takeLocks, supervise: superviseChild };
}

/** Failures that are expected: they have the exit code of -E, and are successes with --skip. */
const lockConflicts = ["LOCK_BUSY", "LOCK_TIMEOUT", "TICK_DONE_ELSEWHERE", "TICK_NOT_DUE", "TICK_SKIPPED"] as const;

/** Throws BatonError for a failure before the command was started, and StoppedBySignal for a signal. */
export async function runLock(options: LockCommandOptions, io: Io, deps: LockDependencies): Promise<ExitCode> {
  const facts = new ReportFacts();
  const about = { verb: "lock", conflicts: lockConflicts, skips: options.values.skip } as const;
  return await runReported({ ...options, ...about, io, facts }, () => lockAndRun(options, io, { deps, facts }));
}

/** Runs the command without reporting its end. Rejects as `runLock` does. */
export async function lockAndRun(
  options: LockCommandOptions,
  io: Io,
  { deps, facts }: { readonly deps: LockDependencies; readonly facts: ReportFacts },
): Promise<LockEnding> {
  using stop = new StopSignalListener(deps.signals);
  const { values } = options;
  // A call that is a little early waits for its tick.
  const moreMs = values.tick === undefined ? 0 : values.skew;
  using limit = callDeadline(deps.clock, options.waitMs, { values, stop: stop.signal, moreMs });
  let guarded = false;
  let notices: TakenLocks["notices"] = [];
  let zk: ZooKeeper | null = null;
  try {
    const what = `${options.names.length === 1 ? "lock" : "locks"} ${quotedNames(options.names)}`;
    const place = announceCoordination(options, io, { what, scope: values.scope, signal: limit.signal });
    const opened = (session: ZooKeeper) => {
      if (zk === null) warnOfTimeout(options, io, { place, zk: session });
      zk = session;
      deps.guard.setSession(formatSessionHandle(place.connect, session.session));
    };
    const taken = await takeInSession(options, io, { deps, place, limit: limit.signal, opened });
    limit.cancel();
    notices = taken.notices;
    facts.granted(taken.leases, taken.waitedMs);
    if (options.verbose) io.err(grantLine(taken.leases, taken.waitedMs));
    const lease = taken.leases.length === 1 ? taken.leases[0] : await setOf(taken.leases);
    using note = LeaseNote.open(lease, { clock: deps.clock, libc: await loadLibc() });
    guarded = true; // from now on supervision ends the guard
    const outcome = await deps.supervise({
      ...superviseOptions(options, io, deps),
      lease,
      guard: deps.guard,
      leavesRunning: values.leaveRunning,
      grantedAtMs: taken.grantedAtMs,
      signal: stop.signal,
      env: jobEnvironment(io, {
        ...{ ...taken, tick: taken.tick?.run, place, note, passAuth: values.passAuth, trace: facts.trace },
      }),
    });
    facts.outcome = outcome;
    const problems = await Promise.all(taken.recorded.map((hold) => hold.end(outcome)));
    for (const problem of problems) if (problem !== null) io.err(`baton: ${problem}\n`);
    const ending = decideLockEnding(outcome, {
      what: quotedNames(options.names),
      lost: lease.lost,
      outage: lease.describeOutage?.(),
      maxHoldMs: values.maxHold,
      isScript: options.script !== undefined,
      startHint: startHintOf(options.names),
    });
    if (ending === null) throw stop.signal.reason;
    // A process that could not be killed may still run: the session is not closed, and ends by its timeout.
    if (outcome.kind === "breach") zk = null;
    return ending;
  } finally {
    if (!guarded) deps.guard.end();
    if (zk !== null) await closeSession(zk, deps.clock, guarded ? stop.signal : limit.signal);
    await Promise.all(notices.map((notice) => stop.signal.aborted ? notice.kill() : notice.end()));
  }
}

/**
 * Takes the locks. If the session expires during the wait, because no server responded for T, another session waits at
 * the end of the queue. Calls `opened` for each session; the caller closes the last one.
 */
async function takeInSession(options: LockCommandOptions, io: Io, { deps, place, limit, opened }: {
  readonly deps: LockDependencies;
  readonly place: Coordination;
  readonly limit: AbortSignal;
  readonly opened: (zk: ZooKeeper) => void;
}): Promise<TakenLocks> {
  const { clock } = deps;
  const { quiet, waitMs } = options;
  const startMs = clock.now();
  const what = quotedNames(options.names);
  for (let isPatient = waitsForServer(waitMs, options.values);; isPatient = true) {
    const zk = await openSession(deps.connect, place.connect, { isPatient, io, clock, quiet, what });
    opened(zk);
    try {
      const context = { io, clock, signal: limit, acl: place.connect.acl, startMs };
      const taking = deps.takeLocks(zk, options, context);
      setImmediate(() => void loadLibc()); // uses the time in which the servers work
      return await taking;
    } catch (thrown) {
      if (waitMs === 0 || limit.aborted || !isSessionEnd(zk.session.ended.reason)) throw thrown;
      if (!quiet) {
        io.err(`baton: the session that waited for ${what} has expired; waiting again at the end of the queue\n`);
      }
    }
  }
}

/**
 * The words of a command that has a -- of its own are taken for names if there is no -- before it:
 * `refuseProgramNames`.
 */
function startHintOf(names: readonly string[]): string {
  return names.length === 1 ? "" : `; the words before -- are names of locks: ${quotedNames(names)}`;
}

async function setOf(leases: TakenLocks["leases"]): Promise<Lease> {
  const { LeaseSet } = await import("../../../src/base/process/lease_set.ts");
  return new LeaseSet(leases);
}

function grantLine(leases: readonly Lease[], waitedMs: number): string {
  return leases.map((lease) =>
    `baton: "${lease.name}" is locked after ${Math.round(waitedMs)} ms as ${lease.holderId}, ` +
    `token ${lease.fencingToken}, session timeout ${lease.sessionTimeoutMs} ms\n`
  ).join("");
}

export const lockCommand = defineCommand({
  name: "lock",
  summary: "run a command while holding a lock",
  usage: "NAME [options] COMMAND [ARGUMENT…] | NAME… [options] -- COMMAND [ARGUMENT…]",
  details: [
    "Waits for the lock, runs the command, and exits with the command's exit code. Options come before the command. Several " +
    "names before -- are locked together, in sorted order; a command with an argument -- of its own needs a -- before it, too. " +
    "A program among several names is refused (64), because it may begin the command; if it is a lock, write -- twice.",
    "The command and all processes that it starts are stopped before another process can get the lock. Processes that it " +
    "leaves in the background are stopped when it ends, and a line on stderr lists them.",
    "The options of flock have the same meaning here. NAME is no file, and the exit code for a busy lock is 75; -E 1 makes it flock's.",
    "Without --servers the lock reaches this user's (or, if root set up a keeper, all) processes on this machine. A message " +
    "says so on a terminal, and with -v.",
    "With --tick it runs at most once for each time of a schedule, on whichever host calls first: the crontab of each host has the " +
    "same line. The first call that finds a tick due takes it together with the lock; the others exit with 81. A tick that no host " +
    "ran is recorded as missed, one whose host died as lost. docs/protocol/tick.md has the rules.",
    "With --recipe it takes a lock that Curator or kazoo programs take too, and shares one queue with them: curator is an " +
    "InterProcessMutex or a LeaderSelector; curator-rw an InterProcessReadWriteLock; kazoo a Lock or WriteLock, with -s a " +
    "ReadLock. NAME is then the path of the lock's node. Children of another kind are refused (78). baton stops its own " +
    "command in time. The other programs check no lease: a suspended one may go on for a while after baton has got the lock, " +
    "and only the fencing token protects a store from it.",
  ],
  examples: [
    ["baton lock nightly ./backup.sh", "wait, run, exit with the exit code of backup.sh"],
    ["baton lock -n nightly ./backup.sh", "if the lock is busy, exit 75 immediately and print the holder"],
    ["baton lock -w 10 nightly ./backup.sh", "wait at most ten seconds, then exit 75"],
    [
      "*/5 * * * * baton lock --skip sync ./sync.sh",
      "a line of a crontab: a run that finds the lock busy ends immediately, and cron mails nothing",
    ],
    [
      "0 3 * * * baton lock backup --skip --tick '0 3 * * *' --timezone Europe/Berlin --catch-up 6h ./backup.sh",
      "a line of the crontab of every host: one of them runs each tick, up to 6 hours late",
    ],
    ["baton lock nightly -c './dump | gzip >dump.gz'", "a line for the shell, as in flock"],
    ["baton lock db web -- ./deploy.sh", "two locks"],
    ["baton lock -s cfg -- ./read.sh", "shared: together with other readers"],
    ["baton lock -N 3 gpu -- ./train.sh", "a semaphore: at most three at the same time"],
    [
      "baton lock -N 3 gpu -- sh -c 'CUDA_VISIBLE_DEVICES=$BATON_LOCK_SLOT ./train.sh'",
      "each of the three has its own number from 0 to 2",
    ],
    [
      "baton lock --priority background --reason 'bulk propagation' article-7 -- ./propagate.sh",
      "foreground calls are served first",
    ],
    ["baton lock --recipe curator /app/locks/nightly -- ./backup.sh", "share the lock with programs that use Curator"],
    ["baton lock --servers zk1:2181,zk2:2181,zk3:2181/app nightly -- ./backup.sh", "for many machines"],
  ],
  settings: lockCommandSettings,
  syntax: lockSyntax,
  completes: "locks",
  run: lock,
});

async function lock(call: Call<typeof lockCommandSettings>): Promise<ExitCode> {
  const options = readLockOptions(call);
  if (options.values.tick !== undefined) {
    (await import("./tick_lock.ts")).checkTick(options, call.io.env);
  }
  if (options.values.onBusyFor !== undefined) {
    (await import("./busy_notice_watch.ts")).parseBusyNotice(options.values.onBusyFor); // throws for an invalid one
  }
  if (call.names.length > 1) (await import("./program_names.ts")).refuseProgramNames(call, call.io.env["PATH"]);
  const guard = startGuard(sayTo(call.io)); // starts in a few milliseconds, in parallel with all that follows
  return await runLock(options, call.io, lockDependencies(guard));
}

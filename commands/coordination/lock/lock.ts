/** `baton lock`: runs a command under one or more locks, and reports how it ended. */
import { startGuard } from "../../../src/base/process/guard/guard.ts";
import { type Io, stderrSentencePrinter } from "../../../src/base/terminal/io.ts";
import type { ExitCode } from "../../../src/base/exit_codes.ts";
import { type LockCommandOptions, lockCommandSettings, lockCommandSyntax, readLockOptions } from "../lock_options.ts";
import { runWithStatusReport, StatusReportFacts } from "../../../src/coordination/job/run_with_status_report.ts";
import { type CommandCall, defineCommand } from "../../command.ts";
import { type LockedJobDependencies, lockedJobDependencies, runLockedJob } from "../locked_job.ts";

/** The codes of expected failures. -E sets their exit code, and --skip turns them into successes. */
const lockConflicts = ["LOCK_BUSY", "LOCK_TIMEOUT", "TICK_DONE_ELSEWHERE", "TICK_NOT_DUE", "TICK_SKIPPED"] as const;

/** Runs `baton lock`. Throws BatonError for a failure before the command starts, or StoppedBySignal after a signal. */
export async function runLock(options: LockCommandOptions, io: Io, deps: LockedJobDependencies): Promise<ExitCode> {
  const facts = new StatusReportFacts();
  const about = { verb: "lock", conflicts: lockConflicts, skips: options.values.skip } as const;
  return await runWithStatusReport(
    { ...options, ...about, io, facts },
    () => runLockedJob(options, io, { deps, facts }),
  );
}

export const lockCommand = defineCommand({
  name: "lock",
  summary: "run a command while holding a lock",
  usage: "NAME [options] COMMAND [ARGUMENT…] | NAME… [options] -- COMMAND [ARGUMENT…]",
  details: [
    "Waits for the lock, runs the command, and exits with the command's exit code. Options come before the " +
    "command. To take several locks, list their names before --. If the command itself contains --, put " +
    "another -- before the command. If one of several names is also a program, baton stops (64): a -- may " +
    "be missing. To use it as a lock name, write -- twice.",
    "baton stops the command and all processes that it starts before another process can get the lock. When " +
    "the command ends, baton stops the processes that it left in the background, and lists them.",
    "The options of flock have the same meaning here. NAME is only a name, not a file. A busy lock exits " +
    "with 75; use -E 1 for flock's exit code.",
    "With --tick the command runs at most once for each time of a schedule, on one of the hosts that call. " +
    "The first call that finds a tick due takes the tick and the lock; the others exit with 81. baton " +
    "history NAME shows what became of each tick.",
    "With --recipe it takes a lock that Curator or kazoo programs use, and shares their queue: curator is " +
    "an InterProcessMutex or a LeaderSelector; curator-rw an InterProcessReadWriteLock; kazoo a Lock or " +
    "WriteLock, with -s a ReadLock. NAME is then the path of the lock's node. Those programs do not check a " +
    "lease: one that was suspended may keep working after baton has the lock. Only a fencing token protects " +
    "your data from that.",
  ],
  caution:
    "Without --servers, the lock covers only your own processes on this machine. Other users, also root, share it " +
    "only if root runs a keeper for all users: systemctl enable --now baton-keeper.",
  examples: [
    ["baton lock nightly ./backup.sh", "wait, run, exit with the exit code of backup.sh"],
    ["baton lock -n nightly ./backup.sh", "if the lock is busy, exit 75 immediately and print the holder"],
    ["baton lock -w 10 nightly ./backup.sh", "wait at most ten seconds, then exit 75"],
    [
      "*/5 * * * * baton lock --skip sync ./sync.sh",
      "in a crontab: skip this run if the previous one is still going; cron sends no mail",
    ],
    [
      "*/30 * * * * baton lock backup --skip --tick '0 3 * * *' --timezone Europe/Berlin --catch-up 6h ./backup.sh",
      "in the crontab of every host: one of them runs each tick, up to 6 hours late",
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
  syntax: lockCommandSyntax,
  completes: "locks",
  run: lock,
});

async function lock(call: CommandCall<typeof lockCommandSettings>): Promise<ExitCode> {
  const options = readLockOptions(call);
  if (options.values.tick !== undefined) {
    (await import("./tick_lock.ts")).checkTickOptions(options, call.io.env);
  }
  if (options.values.onBusyFor !== undefined) {
    (await import("./busy_notice_watch.ts")).parseBusyNotice(options.values.onBusyFor); // throws for an invalid notice
  }
  if (call.names.length > 1) (await import("./program_names.ts")).refuseProgramsAsLockNames(call, call.io.env["PATH"]);
  // The guard process starts within milliseconds, in parallel with the following work.
  const guard = startGuard(stderrSentencePrinter(call.io));
  return await runLock(options, call.io, lockedJobDependencies(guard));
}

/** `baton lock`: its words. What it does is in run_lock.ts. */
import { startGuard } from "../../src/process/guard/guard.ts";
import { type Call, defineCommand } from "../command.ts";
import type { ExitCode } from "../exit_codes.ts";
import { lockCommandSettings, lockOptionsOf } from "./lock_options.ts";
import { lockDependencies, runLock } from "./run_lock.ts";

export const lockCommand = defineCommand({
  name: "lock",
  summary: "run a command while holding a lock",
  usage: "NAME… [options] -- COMMAND [ARGUMENT…]",
  details: [
    "Waits for the lock, runs the command, and exits with the command's own code. Several names are taken together, in " +
    "sorted order. The command and everything it starts are stopped before the lock can go to anybody else.",
    "Without --servers the lock reaches this user's (or, if root set up a keeper, all) processes on this machine, and a " +
    "line on stderr says so.",
    "With --recipe it takes a lock that programs with Curator or kazoo take too, by their names and in their order: curator is " +
    "an InterProcessMutex, or the place of a LeaderSelector; curator-rw an InterProcessReadWriteLock; kazoo a Lock or WriteLock, " +
    "and with -s a ReadLock. NAME is then the path of the lock's node. Children of another kind are refused (78). baton's " +
    "promise holds for its own command; the others keep no lease end, so that one that is stopped or cut off may go on for a " +
    "while after its session has ended and baton has been given the lock: only the fencing token shields a store from it.",
  ],
  examples: [
    ["baton lock nightly -- ./backup.sh", "waits, runs, exits with backup.sh's code"],
    ["baton lock -n nightly -- ./backup.sh", "exit 75 at once when it is busy; stderr says who holds it"],
    ["baton lock -w 10s -E 0 nightly -- ./backup.sh", "wait for ten seconds at most, then exit 0"],
    ["baton lock -s cfg -- ./read.sh", "shared: together with other readers"],
    ["baton lock -N 3 gpu -- ./train.sh", "a semaphore: three at a time"],
    [
      "baton lock -N 3 gpu -- sh -c 'CUDA_VISIBLE_DEVICES=$BATON_LOCK_SLOT ./train.sh'",
      "each of the three has a number of its own, from 0 to 2",
    ],
    [
      "baton lock --priority background --reason 'bulk propagation' article-7 -- ./propagate.sh",
      "others pass it in the queue",
    ],
    ["baton lock --recipe curator /app/locks/nightly -- ./backup.sh", "one at a time with programs that use Curator"],
    ["baton lock --servers zk1:2181,zk2:2181,zk3:2181/app nightly -- ./backup.sh", "over many machines"],
  ],
  settings: lockCommandSettings,
  completes: "locks",
  run: lock,
});

async function lock(call: Call<typeof lockCommandSettings>): Promise<ExitCode> {
  const options = lockOptionsOf(call);
  const guard = startGuard(); // its start, of some milliseconds, runs beside everything that comes now
  return await runLock(options, call.io, lockDependencies(guard));
}

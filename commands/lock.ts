/** `baton lock`: its words. What it does is in run_lock.ts. */
import { superviseChild } from "../src/cli/child/supervise_child.ts";
import { processSignals } from "../src/cli/child/signal_source.ts";
import { startGuard } from "../src/cli/guard/guard.ts";
import { connect } from "../src/clients/zookeeper/client.ts";
import { systemClock } from "../src/support/clock.ts";
import { defineCommand } from "./command.ts";
import { lockCommandSettings, lockOptionsOf } from "./lock_options.ts";
import { type LockDependencies, runLock } from "./run_lock.ts";
import { takeLocks } from "./take_locks.ts";

export const lockCommand = defineCommand({
  name: "lock",
  summary: "run a command while holding a lock",
  usage: "NAME… [options] -- COMMAND [ARGUMENT…]",
  details: [
    "Waits for the lock, runs the command, and exits with the command's own code. Several names are taken together, in " +
    "sorted order. The command and everything it starts are stopped before the lock can go to anybody else.",
    "Without --servers the lock reaches this user's (or, if root set up a keeper, all) processes on this machine, and a " +
    "line on stderr says so.",
  ],
  examples: [
    ["baton lock nightly -- ./backup.sh", "waits, runs, exits with backup.sh's code"],
    ["baton lock -n nightly -- ./backup.sh", "exit 75 at once when it is busy; stderr says who holds it"],
    ["baton lock -w 10s -E 0 nightly -- ./backup.sh", "wait for ten seconds at most, then exit 0"],
    ["baton lock -s cfg -- ./read.sh", "shared: together with other readers"],
    ["baton lock -N 3 gpu -- ./train.sh", "a semaphore: three at a time"],
    [
      "baton lock --priority background --reason 'bulk propagation' article-7 -- ./propagate.sh",
      "others pass it in the queue",
    ],
    ["baton lock --servers zk1:2181,zk2:2181,zk3:2181/app nightly -- ./backup.sh", "over many machines"],
  ],
  settings: lockCommandSettings,
  run: (call) => runLock(lockOptionsOf(call), call.io, dependencies()),
});

function dependencies(): LockDependencies {
  const clock = systemClock();
  return {
    clock,
    signals: processSignals(),
    connect: (options) => connect({ ...options, clock }),
    takeLocks,
    startGuard,
    supervise: superviseChild,
  };
}

/**
 * The environment variables that baton sets for the commands that it runs, with their help texts. A nested call of
 * baton reads only the variables that say where the lock is.
 */

export const lockCommandVariables = {
  BATON_LOCK_NAME: "name of the lock; with several locks, one per line, sorted",
  BATON_LOCK_PATH: "ZooKeeper node of the lock; with several locks, one per line",
  BATON_LOCK_MODE: "mode of the lock: exclusive, shared or permit",
  BATON_LOCK_SLOT: "only for a permit (-N): its number, the lowest free one from 0 to N-1, " +
    "which no other holder has at the same time; with several locks, one per line",
  BATON_LOCK_LIMIT: "maximum number of holders: 1 for exclusive, the limit for a permit, empty for shared; " +
    "with several locks, one per line",
  BATON_LOCK_SCOPE: "scope of the lock: cluster, machine or user",
  BATON_LOCK_COOKIE: "ID of the holder; a nested call appends its own ID after a colon",
  BATON_LOCK_ACQUIRED_AT:
    "time of the grant by the wall clock of this machine, RFC 3339; for display, not for decisions",
  BATON_LOCK_WAITED_MS: "duration of the wait, in milliseconds",
  BATON_ELECTION_NAME: "under baton elect: name of the election",
  BATON_ELECTION_VALUE: "under baton elect: value that this leader publishes (--value)",
  BATON_TICK: "under baton lock --tick: time of the tick, RFC 3339",
  BATON_TICK_UNIX: "under baton lock --tick: time of the tick, in seconds since 1970",
  BATON_TICK_ATTEMPT: "under baton lock --tick: number of this try of the tick, from 1",
  BATON_LEASE: "file with the end of the lease, for baton check; empty if there is none",
  BATON_BARRIER_NAME: "under baton barrier: name of the barrier",
  BATON_BARRIER_GENERATION: "under baton barrier: number of this start; " +
    "it increases by 1, and restarts at 1 after the barrier was unused for a long time",
  BATON_RANK: "under baton barrier: number of this member, from 0 to BATON_SIZE - 1",
  BATON_SIZE: "under baton barrier: number of members that started together",
  BATON_POOL_NAME: "under baton pool: name of the component",
  BATON_ITEM: "under baton pool: the item to process",
  BATON_HOLD: "under baton hold: what this script holds, for baton release",
  BATON_FENCING_TOKEN:
    "fencing token; it increases with each grant, so storage that remembers the highest token can refuse " +
    "a stale holder; with several locks, one per line",
  BATON_SESSION_ID: "ID of the ZooKeeper session, decimal",
  BATON_SESSION_TIMEOUT_MS: "session timeout that the server granted, in milliseconds",
  BATON_SERVERS: "servers of the lock; nested calls use the same servers",
  BATON_ROOT: "ZooKeeper node below which baton keeps the lock; nested calls use the same node",
} as const;

export type LockCommandVariable = keyof typeof lockCommandVariables;
/**
 * The value of each variable; undefined if the variable does not apply to this command. The type requires an entry for
 * every variable.
 */
export type LockCommandEnvironment = Readonly<Record<LockCommandVariable, string | undefined>>;

/** The variables of a command that runs because a job has failed. */
export const failureCommandVariables = {
  BATON_FAILURE_NAME: "only under on-failure: name of the job",
  BATON_FAILURE_RESULT: "failed, stopped (by baton break), or lost (its host died, or lost the lock)",
  BATON_FAILURE_EXIT_CODE: "exit code",
  BATON_FAILURE_HOST: "host that ran the job",
  BATON_FAILURE_MS: "duration in milliseconds",
  BATON_FAILURE_TICK: "time of the tick, RFC 3339",
  BATON_FAILURE_WHY: "reason, for people",
  BATON_FAILURE_OUTPUT: "only under baton cron: last lines of the output, at most 4 KiB",
} as const;

/**
 * The variables of commands that baton runs without a lock: for a message, because a job has failed, or because a lock
 * has been busy for a long time.
 */
export const messageCommandVariables = {
  BATON_MESSAGE_ID: "ID of the message; the same for each delivery",
  BATON_TOPIC: "under subscribe --exec and get --exec: topic of the message",
  BATON_REDELIVERED: "under subscribe --exec and get --exec: 1 if the message may have been delivered before, else 0",
  BATON_MESSAGE_TRY: "under baton retry-processor: number of this try, from 1",
  BATON_MESSAGE_FENCE: "under baton retry-processor: fencing token; it increases with each try",
  BATON_MESSAGE_KEY: "under baton retry-processor: --key of the message, or empty",
  BATON_MESSAGE_STORE: "under baton retry-processor: name of the store",
  ...failureCommandVariables,
  BATON_BUSY_NAME: "under baton lock --on-busy-for: name of the lock",
  BATON_BUSY_HOLDER: "under baton lock --on-busy-for: its holder, for people",
  BATON_BUSY_MS: "under baton lock --on-busy-for: how long it has been held, in milliseconds",
} as const;

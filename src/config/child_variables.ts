/** The variables baton sets for a child. They say what is, so no setting may read one of them, except for where the lock is. */

export const childVariables = {
  BATON_LOCK_NAME: "the lock's name; with several, one in each line, sorted",
  BATON_LOCK_PATH: "the lock's node on the server; with several, one in each line",
  BATON_LOCK_MODE: "exclusive, shared or permit",
  BATON_LOCK_SLOT:
    "only for a permit (-N): its number, the lowest free one from 0 to N-1 and nobody else's meanwhile; with several locks, one in each line",
  BATON_LOCK_LIMIT:
    "how many may hold it at once: 1, for a permit the limit that counts, a line for each lock, empty for shared",
  BATON_LOCK_SCOPE: "how far it reaches: cluster, machine or user",
  BATON_LOCK_COOKIE: "the holder's id; a nested call appends its own after a colon",
  BATON_LOCK_ACQUIRED_AT: "when it was granted, by this machine's wall clock, RFC 3339; for people, not for decisions",
  BATON_LOCK_WAITED_MS: "how long the wait was, in milliseconds",
  BATON_ELECTION_NAME: "only under baton elect: the election's name",
  BATON_ELECTION_VALUE: "only under baton elect: what the others are told of this leader (--value)",
  BATON_LEASE: "a file that says up to when the lock is held, for baton check; empty where there is none",
  BATON_BARRIER_NAME: "only under baton barrier: the barrier's name",
  BATON_BARRIER_GENERATION:
    "only under baton barrier: grows from start to start, and begins again at 1 when the barrier was long unused",
  BATON_RANK: "only under baton barrier: the number of this member, from 0 to BATON_SIZE less 1",
  BATON_SIZE: "only under baton barrier: how many have started together",
  BATON_POOL_NAME: "only under baton pool: the component",
  BATON_ITEM: "only under baton pool: the item",
  BATON_HOLD: "only under baton hold: what is held and by whom, for baton release",
  BATON_FENCING_TOKEN:
    "grows with every grant: a store that remembers the highest can refuse a stale holder; with several, one in each line",
  BATON_SESSION_ID: "the ZooKeeper session, decimal",
  BATON_SESSION_TIMEOUT_MS: "the session timeout that the server agreed to, in milliseconds",
  BATON_SERVERS: "where the lock lives, so that a nested call goes to the same place",
  BATON_ROOT: "below which node it lives there",
} as const;

export type ChildVariable = keyof typeof childVariables;
/** One value for each variable, undefined where it does not apply; the type keeps the table and what is really set together. */
export type ChildEnvironment = Readonly<Record<ChildVariable, string | undefined>>;

/** What runs for a message, and under no lock: `baton pubsub client … get --exec`, `baton retry-processor run`. */
export const messageVariables = {
  BATON_MESSAGE_ID: "the message's id: the same each time that it comes",
  BATON_TOPIC: "only under get --exec: the topic that it was put into",
  BATON_REDELIVERED: "only under get --exec: 1 for a message that may have been handed out before, else 0",
  BATON_MESSAGE_TRY: "only under baton retry-processor: 1 for the first try, and so on",
  BATON_MESSAGE_FENCE: "only under baton retry-processor: grows with every try",
  BATON_MESSAGE_KEY: "only under baton retry-processor: its --key, or nothing",
  BATON_MESSAGE_STORE: "only under baton retry-processor: the store's name",
} as const;

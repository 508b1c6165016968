/** The variables baton sets for a child. They say what is, so no setting may read one of them, BATON_SERVERS excepted. */

export const childVariables = {
  BATON_LOCK_NAME: "the lock's name; with several, one in each line, sorted",
  BATON_LOCK_PATH: "the lock's node on the server; with several, one in each line",
  BATON_LOCK_MODE: "exclusive, shared or permit",
  BATON_LOCK_SLOT:
    "only for a permit (-N): its number, the lowest free one from 0 to N-1 and nobody else's meanwhile; with several locks, one in each line",
  BATON_LOCK_LIMIT: "how many may hold it at once: 1, the -N of a permit, empty for shared",
  BATON_LOCK_SCOPE: "how far it reaches: cluster, machine or user",
  BATON_LOCK_COOKIE: "the holder's id; a nested call appends its own after a colon",
  BATON_LOCK_ACQUIRED_AT: "when it was granted, by this machine's wall clock, RFC 3339; for people, not for decisions",
  BATON_LOCK_WAITED_MS: "how long the wait was, in milliseconds",
  BATON_FENCING_TOKEN:
    "grows with every grant: a store that remembers the highest can refuse a stale holder; with several, one in each line",
  BATON_SESSION_ID: "the ZooKeeper session, decimal",
  BATON_SESSION_TIMEOUT_MS: "the session timeout that the server agreed to, in milliseconds",
  BATON_SERVERS: "where the lock lives, so that a nested call goes to the same place",
} as const;

export type ChildVariable = keyof typeof childVariables;
/** One value for each variable, undefined where it does not apply; the type keeps the table and what is really set together. */
export type ChildEnvironment = Readonly<Record<ChildVariable, string | undefined>>;

/** How a request can end. Exit codes are chosen from these in commands/exit_codes.ts alone. */

export const statusCodes = [
  /** Done, durably. */
  "OK",
  /** There is no message that the subscriber has not had. */
  "NO_MESSAGE",
  /** The client is not subscribed to the topic. */
  "NOT_SUBSCRIBED",
  /** The server does not serve the topic, or not in this epoch; `owner` says who does, if it knows. */
  "NOT_OWNER",
  /** The publisher has used the counter, or the msg-id, for another body. */
  "COUNTER_REUSE",
  /** A newer operation was done before, or the counter is below what the server remembers. */
  "STALE_OP",
  /** A newer session of this client id took over. */
  "FENCED",
  /**
   * The topic does not know this session's client, or not as the request does: it may have been forgotten since the request was
   * made. Not done now; `registration` says with what number it may come again.
   */
  "UNREGISTERED",
  /** The topic or the disk has reached its limit. */
  "FULL",
  /** What it would need is damaged on the server's disk; the body says what. Definitely not done, and nothing is passed over. */
  "DAMAGED",
  /** Not now: too much is under way, or the topic is on its way to another server. Definitely not done. */
  "OVERLOADED",
  /** The request makes no sense; the body says what. */
  "BAD_REQUEST",
  /** The ACL does not allow it. */
  "DENIED",
  /** The server failed. With `unknown` nobody can say whether it was done. */
  "ERROR",
] as const;

export type StatusCode = (typeof statusCodes)[number];

/** These say that nothing was done now; what an earlier attempt has done, or may still do, they cannot know. */
export const claimsNothingDone: readonly StatusCode[] = [
  "FENCED",
  "UNREGISTERED",
  "FULL",
  "DAMAGED",
  "DENIED",
  "NOT_SUBSCRIBED",
];

/**
 * The status codes of responses. requester.ts turns them into error codes, and src/base/exit_codes.ts turns error codes
 * into exit codes.
 */

export const statusCodes = [
  /** The request was executed, and its effect is durable. */
  "OK",
  /** There is no undelivered message for the subscriber. */
  "NO_MESSAGE",
  /** The client is not subscribed to the topic. */
  "NOT_SUBSCRIBED",
  /** The server does not own the topic in this epoch. `owner` is the owner, if the server knows it. */
  "NOT_OWNER",
  /** The publisher has used the counter, or the message ID, for another body. */
  "COUNTER_REUSE",
  /** The client has already done a newer operation, or the counter is too old for the server to remember. */
  "STALE_OP",
  /** A newer session of this client ID has taken over. */
  "FENCED",
  /**
   * The topic does not know the session's client, or not with this registration number: it may have forgotten the
   * client since the request was made. The request was not executed; the header `registration` has the number to use
   * next.
   */
  "UNREGISTERED",
  /** The topic or the disk has reached its limit. */
  "FULL",
  /**
   * Data that the request needs is damaged on the server's disk; the body names the data. The request was certainly not
   * executed, and no message is skipped.
   */
  "DAMAGED",
  /**
   * The request is not possible now: too many requests are in flight, or the topic is moving to another server. It was
   * certainly not executed.
   */
  "OVERLOADED",
  /** The request is invalid; the body says why. */
  "BAD_REQUEST",
  /** The client list does not allow the request. */
  "DENIED",
  /** The server failed. If the response has the header `unknown`, the request may have been executed. */
  "ERROR",
] as const;

export type StatusCode = (typeof statusCodes)[number];

/** The status codes of a request that had no effect. An earlier attempt of the same request may have had an effect. */
export const nothingDoneStatusCodes: readonly StatusCode[] = [
  "FENCED",
  "UNREGISTERED",
  "FULL",
  "DAMAGED",
  "DENIED",
  "NOT_SUBSCRIBED",
];

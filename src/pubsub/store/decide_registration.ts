/**
 * Decides whether a request of a session comes from a client as the topic knows it.
 * A topic forgets publishers and their used counters. A delayed or repeated request of such a client must not be
 * treated as new. So a topic has a registration number that grows when it forgets a client, and a request contains the
 * number that its client knows. Pure; the model in test/model calls this function.
 */

export interface RegistrationView {
  /** The topic's number when the client was created; null: unknown client. */
  readonly client: number | null;
  /** The topic's current number. */
  readonly topic: number;
}

/**
 * - known: the client exists and was not forgotten since the request was made
 * - new: the client is unknown, and none was forgotten since the request was made
 * - unregistered: the client may have been forgotten since; nothing is done
 */
export type RegistrationDecision = "known" | "new" | "unregistered";

/** `carried`: the number in the request, 0 if it has none. */
export function decideRegistration(carried: number, { client, topic }: RegistrationView): RegistrationDecision {
  if (carried < (client ?? topic)) return "unregistered";
  return client === null ? "new" : "known";
}

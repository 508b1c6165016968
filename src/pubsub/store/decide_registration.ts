/**
 * Whether a request of a session is of a client as the topic knows it. A topic forgets publishers, and with them which counters
 * they have used: what such a client asked for before may come again, from itself or from the network, and must not be taken
 * for something new. So a topic has a number that grows when it forgets, and requests say which one they know. Pure; the
 * model in test/model asks this very function.
 */

export interface RegistrationView {
  /** The topic's number when the client came; null: it is not known. */
  readonly client: number | null;
  /** The topic's number. */
  readonly topic: number;
}

/**
 * - known: it came before, and was not forgotten since the request was made
 * - new: it is not known, and nothing was forgotten since the request was made
 * - unregistered: it may have been forgotten since; done is nothing
 */
export type RegistrationDecision = "known" | "new" | "unregistered";

/** `carried`: the number that the request names, 0 where it names none. */
export function decideRegistration(carried: number, { client, topic }: RegistrationView): RegistrationDecision {
  if (carried < (client ?? topic)) return "unregistered";
  return client === null ? "new" : "known";
}

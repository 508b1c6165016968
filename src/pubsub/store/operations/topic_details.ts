/** The details of a topic that a server shows to an operator. */
export interface TopicDetails {
  readonly epoch: number;
  /** The oldest existing message (`end` + 1 if there is none), and the last assigned id. */
  readonly first: number;
  readonly end: number;
  readonly bytes: number;
  readonly clients: number;
  /** Clients without a session, which the topic never forgets. */
  readonly plainClients: number;
  readonly clientsMax: number;
  readonly subscribers: number;
  /** The subscribers with the most undelivered messages, in descending order. */
  readonly slowest: readonly { readonly client: string; readonly position: number; readonly pending: number }[];
  /** When the oldest undelivered message was stored; null if there is none, or it was stored just now. */
  readonly undeliveredSinceMs: number | null;
  /** A description of damage to the topic's clients; null if none is known. */
  readonly damage: string | null;
}

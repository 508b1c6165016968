/** Rows of topics, subscribers and servers. JSON output has exactly these fields. */

interface OwnedTopicRow {
  readonly topic: string;
  /** A number that increases with each change of the owner. */
  readonly epoch: number;
  readonly state: "new" | "moving" | "stored" | "sealed";
}

export interface TopicListRow extends OwnedTopicRow {
  readonly server: string;
  /** True if the server is connected, or another server has its store; false if neither. */
  readonly there: boolean;
  /**
   * True if the server is connected. If `there` is true and `served` is false, another server takes over the topic at
   * the next request.
   */
  readonly served: boolean;
}

export interface TopicDetailsRow {
  readonly topic: string;
  readonly server: string;
  readonly epoch: number;
  /** The ID of the oldest stored message; `end` + 1 if there is none. */
  readonly first: string;
  readonly end: string;
  readonly bytes: number;
  /** The number of clients that the topic knows, including those that are not subscribed. */
  readonly clients: number;
  /**
   * The number of clients without a session. The topic forgets such a client only if an operator or the client asks for
   * it.
   */
  readonly plain_clients: number;
  readonly max_clients: number;
  readonly subscriber_count: number;
  /** The subscribers, the slowest first. */
  readonly subscribers: readonly SubscriberRow[];
  /** When the oldest undelivered message was stored; null if there is none, or it was stored just now. */
  readonly oldest: string | null;
  /** A description of damaged data about clients, for people; null if there is none. */
  readonly damage: string | null;
}

export interface SubscriberRow {
  readonly client: string;
  /** The ID of the last message that the subscriber acknowledged. */
  readonly position: string;
  readonly pending: number;
}

export interface TopicServerRow {
  readonly server: string;
  /** The address for clients; null if the server is not connected. */
  readonly endpoint: string | null;
  /** The ID of the database that the server shares with other servers; null if it stores topics in a folder. */
  readonly store: string | null;
  readonly draining: boolean;
  readonly topic_count: number;
}

export interface TopicServerDetails extends TopicServerRow {
  readonly topics: readonly OwnedTopicRow[];
}

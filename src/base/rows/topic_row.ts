/** Rows of publish/subscribe: topics, their subscribers, and servers. JSON prints them as they are. */

interface OwnedTopicRow {
  readonly topic: string;
  /** Increases with each change of the owner. */
  readonly epoch: number;
  readonly state: "new" | "moving" | "stored" | "sealed";
}

export interface TopicListRow extends OwnedTopicRow {
  /** ID of the server that has the topic. */
  readonly server: string;
  /** False: its server is not connected, and no other server has its store. */
  readonly there: boolean;
  /** True: its server is connected. If false and `there`, another server takes it over with the next request. */
  readonly served: boolean;
}

/** The details of a topic, as its server shows them. */
export interface TopicDetailsRow {
  readonly topic: string;
  readonly server: string;
  readonly epoch: number;
  /** ID of the oldest stored message; `end` + 1 if there is none. */
  readonly first: string;
  /** ID of the newest message. */
  readonly end: string;
  readonly bytes: number;
  /** Clients that the topic knows, subscribed or not. */
  readonly clients: number;
  /** Clients without a session, which the topic never forgets by itself. */
  readonly plain_clients: number;
  readonly max_clients: number;
  readonly subscriber_count: number;
  /** The slowest first. */
  readonly subscribers: readonly SubscriberRow[];
  /** Damaged data about clients, for people. */
  readonly damage: string | null;
}

export interface SubscriberRow {
  readonly client: string;
  /** Last message that it received. */
  readonly position: string;
  /** Undelivered messages. */
  readonly pending: number;
}

export interface ServerRow {
  readonly server: string;
  /** Null: it is not connected. */
  readonly endpoint: string | null;
  /** ID of the database that it shares with other servers; null: a folder. */
  readonly store: string | null;
  /** Whether it gets no new topics. */
  readonly draining: boolean;
  readonly topic_count: number;
}

/** A server with its topics. */
export interface ServerDetails extends ServerRow {
  readonly topics: readonly OwnedTopicRow[];
}

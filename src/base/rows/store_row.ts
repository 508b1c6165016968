/** Rows of message stores and of their messages. JSON output has exactly these fields. */

export type MessageStateName = "waiting" | "in_flight" | "done" | "dead" | "dropped" | "cancelled";

export interface StoreRow {
  readonly name: string;
  /** The folder of the store, or the URL of its database. */
  readonly folder: string;
  readonly paused: boolean;
  /**
   * The number and size of the messages in each state. `done`, `dropped` and `cancelled` count since the store was
   * created.
   */
  readonly states: Readonly<Record<MessageStateName, { readonly count: number; readonly bytes: number }>>;
  /** The time at which the oldest waiting message was accepted; null if no message waits. */
  readonly oldest: string | null;
  /** The time at which the next try is due; null if no try is. */
  readonly next: string | null;
  /** The number of processors that try the store's messages now; null if this machine cannot know the number. */
  readonly processors: number | null;
  /**
   * The number of dead letters that are not delivered to their destination yet, the number of those that are delivered,
   * and the last error.
   */
  readonly dead_letters: { readonly pending: number; readonly forwarded: number; readonly error: string | null };
  /** The disk space of the store. For a database, `used_bytes` is the size of its messages and `free_bytes` is null. */
  readonly disk: { readonly used_bytes: number; readonly free_bytes: number | null };
}

/** Returns true if messages wait and no processor tries them. */
export function isStoreUnattended({ next, processors, paused }: StoreRow): boolean {
  return next !== null && processors === 0 && !paused;
}

/** Returns the number of dead letters that were not delivered to a destination: they wait for a decision. */
export function undeliveredDeadLetters({ states: { dead }, dead_letters: { forwarded } }: StoreRow): number {
  return Math.max(0, dead.count - forwarded);
}

/** A message without its content. A dead letter is a message whose state is dead. */
export interface ListedMessageRow {
  readonly id: string;
  readonly name: string;
  readonly state: MessageStateName;
  readonly key: string | null;
  /** The number of tries that have ended since the message was accepted or redriven. */
  readonly tries: number;
  /** The number of tries that ended because the processor died. */
  readonly crashes: number;
  /** Why the message is dead or dropped; null in other states. */
  readonly reason: "exhausted" | "too_old" | "final" | "crashed" | "damaged" | "purged" | null;
  readonly last_error: string | null;
  readonly first_at: string;
  /** The time at which the last try ended; null before the first try. */
  readonly last_at: string | null;
  readonly next_at: string | null;
  readonly bytes: number;
  /**
   * The progress of the delivery to the dead-letter sink. `none` if the message is not a dead letter, or no process had
   * a sink yet; `kept` if it is never sent.
   */
  readonly forwarding: "none" | "kept" | "pending" | "sending" | "forwarded";
  readonly forwarding_error: string | null;
}

/** Dead letters with the same reason and last error. */
export interface DeadLetterGroupRow extends Pick<ListedMessageRow, "reason" | "last_error"> {
  readonly count: number;
  /** When the first and the last of them were accepted. */
  readonly oldest: string;
  readonly newest: string;
  /** Where the newest one was to go: the method and URL, or the first word of the command. Null if it is not stored. */
  readonly destination: string | null;
}

export interface DeadLetterGroups {
  /** The largest group is first. */
  readonly groups: readonly DeadLetterGroupRow[];
  /** The number of dead letters that were counted, the oldest ones of the store. */
  readonly counted: number;
}

/** One page of a list of messages, the oldest first. */
export interface MessageListPage {
  readonly messages: readonly ListedMessageRow[];
  /** The argument with which to request the next page; null if this is the last page. */
  readonly next: number | null;
}

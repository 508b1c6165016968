/** Rows of message stores and of their messages. JSON output has exactly these fields. */

export type MessageStateName = "waiting" | "in_flight" | "done" | "dead" | "dropped" | "cancelled";

export interface StoreRow {
  readonly name: string;
  /** The folder of the store, or the URL of its database. */
  readonly folder: string;
  readonly paused: boolean;
  /** The messages in each state. `done`, `dropped` and `cancelled` count since the store was created. */
  readonly states: Readonly<Record<MessageStateName, { readonly count: number; readonly bytes: number }>>;
  /** When the oldest waiting message was accepted; null if none waits. */
  readonly oldest: string | null;
  /** When the next try is due; null if none is. */
  readonly next: string | null;
  /** How many processors try its messages now; null if this machine cannot know it. */
  readonly processors: number | null;
  /** Dead letters that are not delivered to their destination yet, and the last error. */
  readonly dead_letters: { readonly pending: number; readonly error: string | null };
  /** The space of the store. In a database, `used_bytes` is the size of its messages and `free_bytes` is null. */
  readonly disk: { readonly used_bytes: number; readonly free_bytes: number | null };
}

/** Returns whether messages wait although no processor tries them. */
export function isStoreUnattended({ next, processors, paused }: StoreRow): boolean {
  return next !== null && processors === 0 && !paused;
}

/** A message without its content. A dead letter is a message whose state is dead. */
export interface ListedMessageRow {
  readonly id: string;
  readonly name: string;
  readonly state: MessageStateName;
  readonly key: string | null;
  /** The number of tries that ended since the message was accepted or redriven. */
  readonly tries: number;
  /** The number of tries that ended because the processor died. */
  readonly crashes: number;
  /** Why the message is dead or dropped; null in other states. */
  readonly reason: "exhausted" | "too_old" | "final" | "crashed" | "damaged" | "purged" | null;
  readonly last_error: string | null;
  readonly first_at: string;
  /** The end of the last try; null before the first one. */
  readonly last_at: string | null;
  readonly next_at: string | null;
  readonly bytes: number;
  /** How far the delivery of a dead letter to the dead-letter sink is. */
  readonly forwarding: "none" | "pending" | "sending" | "forwarded";
  readonly forwarding_error: string | null;
}

/** One page of a list of messages, the oldest first. */
export interface MessageListPage {
  readonly messages: readonly ListedMessageRow[];
  /** The number that requests the next page; null if this is the last page. */
  readonly next: number | null;
}

/** Rows of message stores and of their messages. JSON prints them as they are. */

export type MessageStateName = "waiting" | "in_flight" | "done" | "dead" | "dropped" | "cancelled";

export interface StoreRow {
  readonly name: string;
  /** The folder, or the URL of the database. */
  readonly folder: string;
  readonly paused: boolean;
  /** done, dropped and cancelled count since the store was created. */
  readonly states: Readonly<Record<MessageStateName, { readonly count: number; readonly bytes: number }>>;
  /** When the oldest waiting message was accepted. */
  readonly oldest: string | null;
  /** When the next try is due. */
  readonly next: string | null;
  /** Dead letters that are not delivered to their destination yet, and the last error. */
  readonly dead_letters: { readonly pending: number; readonly error: string | null };
  /** Bytes; of a store in a database the size of its messages, and null. */
  readonly disk: { readonly used_bytes: number; readonly free_bytes: number | null };
}

/** A message without its content. A dead letter is a message whose state is dead. */
export interface ListedMessageRow {
  readonly id: string;
  /** Name of the store. */
  readonly name: string;
  readonly state: MessageStateName;
  readonly key: string | null;
  /** Tries that ended since the message was accepted or redriven. */
  readonly tries: number;
  /** Tries that ended because the processor died. */
  readonly crashes: number;
  /** Why the message is dead or dropped. */
  readonly reason: "exhausted" | "too_old" | "final" | "crashed" | "damaged" | "purged" | null;
  readonly last_error: string | null;
  readonly first_at: string;
  /** The end of its last try. */
  readonly last_at: string | null;
  readonly next_at: string | null;
  /** Size of the body. */
  readonly bytes: number;
  /** Delivery of a dead letter to its destination. */
  readonly forwarding: "none" | "pending" | "sending" | "forwarded";
  readonly forwarding_error: string | null;
}

/** A page of messages, the oldest first. */
export interface MessagePage {
  readonly messages: readonly ListedMessageRow[];
  /** The number with which the next page is asked for; null: there is none. */
  readonly next: number | null;
}

/**
 * A client of one topic (publisher, subscriber or both) in memory, and the client's row. Names are stored as bytes,
 * because some SQLite bindings end a text at a zero byte.
 */
import type { MsgIdRecord } from "../../wire/topic_records.ts";
import type { DatabaseRow } from "../../../base/storage/sql_row.ts";
import type { PublisherWindow } from "../decisions/publisher_window.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export const encodeStoredName = (name: string): Uint8Array => encoder.encode(name);
export const decodeStoredName = (bytes: unknown): string => {
  if (bytes instanceof Uint8Array) return decoder.decode(bytes);
  throw new Error("a name is damaged");
};

/** Describes a topic whose row is damaged, for a message. The topic's name itself may be damaged. */
export function describeTopicRow(name: unknown): string {
  try {
    return `of this store (named ${JSON.stringify(decodeStoredName(name))})`;
  } catch {
    return "of this store (its name cannot be read)";
  }
}

/** A client of one topic in memory. Only the engine changes the fields; after a change it calls `markChanged`. */
export interface TopicClient {
  readonly id: number;
  readonly topicId: number;
  readonly name: string;
  /** True while the client has no row. */
  isNew: boolean;
  session: number;
  key: string;
  op: number;
  opSession: number;
  /** The last session whose puts are no longer remembered. */
  forgottenSession: number;
  position: number | null;
  /** The topic's registration number when the client was created. */
  readonly registration: number;
  /** The last message that was delivered to the client since the store was opened. */
  deliveredUpTo: number;
  /** The counter windows by session; null if they are not in memory. */
  windows: Map<number, PublisherWindow> | null;
  msgIds: Map<string, StoredMsgId> | null;
}

/** A remembered msg-id of a publisher, with the number of its row. */
export interface StoredMsgId extends MsgIdRecord {
  readonly rowId: number;
}

export function decodeClientRow(row: DatabaseRow): TopicClient {
  const position = row["position"];
  return {
    id: Number(row["id"]),
    topicId: Number(row["topic"]),
    name: decodeStoredName(row["name"]),
    isNew: false,
    session: Number(row["session"]),
    key: decodeStoredName(row["key"]),
    op: Number(row["op"]),
    opSession: Number(row["op_session"]),
    forgottenSession: Number(row["forgotten_session"]),
    position: position === null ? null : Number(position),
    registration: Number(row["registration"]),
    deliveredUpTo: 0,
    windows: null,
    msgIds: null,
  };
}

export function encodeClientRow(client: TopicClient) {
  return {
    id: client.id,
    topic: client.topicId,
    name: encodeStoredName(client.name),
    session: client.session,
    key: encodeStoredName(client.key),
    op: client.op,
    op_session: client.opSession,
    forgotten_session: client.forgottenSession,
    position: client.position,
    registration: client.registration,
  };
}

/** A client at one topic, as it is in memory. Names are stored as bytes: SQLite's text ends at a zero in some bindings. */
import type { KeyEntry } from "../../wire/pubsub/topic_transfer_data.ts";
import type { PublisherWindow } from "./publisher_window.ts";
import type { SqlRow } from "./topic_database.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export const nameBytes = (name: string): Uint8Array => encoder.encode(name);
export const nameOf = (bytes: unknown): string => {
  if (bytes instanceof Uint8Array) return decoder.decode(bytes);
  throw new Error("a name is damaged");
};

/** A client at one topic. Fields are changed by the engine alone, which then calls `changed`. */
export interface TopicClient {
  readonly id: number;
  readonly topicId: number;
  readonly name: string;
  /** Has no row yet. */
  isNew: boolean;
  session: number;
  key: string;
  op: number;
  opSession: number;
  /** Of sessions up to this one nothing is remembered. */
  forgottenSession: number;
  position: number | null;
  /** The topic's number when it came. */
  readonly registration: number;
  /** Messages up to this id were handed out since the store was opened. */
  handedOut: number;
  /** By session; null: not read yet. */
  windows: Map<number, PublisherWindow> | null;
  msgIds: Map<string, StoredKey> | null;
}

export interface StoredKey extends KeyEntry {
  readonly rowId: number;
}

/** A row of the clients. */
export function clientOf(row: SqlRow): TopicClient {
  const position = row["position"];
  return {
    id: Number(row["id"]),
    topicId: Number(row["topic"]),
    name: nameOf(row["name"]),
    isNew: false,
    session: Number(row["session"]),
    key: nameOf(row["key"]),
    op: Number(row["op"]),
    opSession: Number(row["op_session"]),
    forgottenSession: Number(row["forgotten_session"]),
    position: position === null ? null : Number(position),
    registration: Number(row["registration"]),
    handedOut: 0,
    windows: null,
    msgIds: null,
  };
}

/** The same as a row. */
export function rowOf(client: TopicClient) {
  return {
    id: client.id,
    topic: client.topicId,
    name: nameBytes(client.name),
    session: client.session,
    key: nameBytes(client.key),
    op: client.op,
    op_session: client.opSession,
    forgotten_session: client.forgottenSession,
    position: client.position,
    registration: client.registration,
  };
}

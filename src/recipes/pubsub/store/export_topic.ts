/** A sealed topic as the stream that a hand-over sends: bounded pieces, and the SHA-256 of all of them. */
import { createHash } from "node:crypto";
import { TopicDataWriter, type TopicRecord, windowEntriesMax } from "../../../wire/pubsub/topic_data.ts";
import type { ClientTable } from "./client_table.ts";
import { pieceBytes } from "./store_limits.ts";
import type { TopicDatabase } from "./topic_database.ts";

/** Pieces of about `pieceBytes`, or of one message where that is longer; gives the hash when all were taken. */
export function* exportTopic(
  database: TopicDatabase,
  clients: ClientTable,
  topic: { readonly id: number } & Omit<TopicRecord, "first">,
): Generator<Uint8Array, string, void> {
  const hash = createHash("sha256");
  let writer = new TopicDataWriter(pieceBytes);
  let records = 0;
  const cut = (): Uint8Array => {
    const piece = writer.finish();
    hash.update(piece);
    writer = new TopicDataWriter(pieceBytes);
    return piece;
  };
  const oldest = database.get("SELECT min(first) AS first FROM messages WHERE topic = ?", topic.id)?.["first"];
  writer.topic({ ...topic, first: oldest === null || oldest === undefined ? topic.last + 1 : Number(oldest) });
  records++;
  for (const client of clients.stored(topic.id)) {
    writer.client(client);
    records++;
    for (const window of [...clients.loadWindows(client).values()].sort((a, b) => a.session - b.session)) {
      const all = window.entries();
      for (let at = 0; at === 0 || at < all.length; at += windowEntriesMax) {
        writer.window({ ...windowHead(window), entries: all.slice(at, at + windowEntriesMax) });
        records++;
        if (writer.byteLength >= pieceBytes) yield cut();
      }
    }
    const keys = [...clients.msgIds(client).values()];
    for (let at = 0; at < keys.length; at += windowEntriesMax) {
      writer.keys(keys.slice(at, at + windowEntriesMax));
      records++;
    }
    if (writer.byteLength >= pieceBytes) yield cut();
  }
  for (let after = -1;;) {
    const row = database.get(
      "SELECT first, last, records FROM messages WHERE topic = ? AND first > ? ORDER BY first LIMIT 1",
      topic.id,
      after,
    );
    if (row === undefined) break;
    after = Number(row["last"]);
    writer.raw(row["records"] as Uint8Array);
    records += after - Number(row["first"]) + 1;
    if (writer.byteLength >= pieceBytes) yield cut();
  }
  writer.end(records);
  yield cut();
  return hash.digest("hex");
}

const windowHead = ({ session, key, low }: { session: number; key: string; low: number }) => ({ session, key, low });

/**
 * Listens to handoffs on their way to servers, and tells what each topic held, whatever its epoch. Owns no connection.
 */
import { createHash, type Hash } from "node:crypto";
import { decodePubsubMessage } from "../../../../src/pubsub/wire/decode_message.ts";
import { TopicDataReader, type TopicDataRecord } from "../../../../src/pubsub/wire/topic_records.ts";
import type { ZmtpRelay } from "./zmtp_relay.ts";

export interface TopicContent {
  readonly epoch: number;
  readonly digest: string;
  readonly messages: number;
}

export class ContentTap implements Disposable {
  /** By topic: the last that was transferred as a whole. */
  readonly contents = new Map<string, TopicContent>();
  readonly #relays: readonly ZmtpRelay[];
  readonly #open = new Map<string, { reader: TopicDataReader; hash: Hash; messages: number }>();

  constructor(relays: readonly ZmtpRelay[]) {
    this.#relays = relays;
    for (const relay of relays) relay.tap = (frames) => this.#take(frames);
  }

  [Symbol.dispose](): void {
    for (const relay of this.#relays) relay.tap = null;
  }

  #take(frames: readonly Uint8Array[]): void {
    const message = decodePubsubMessage(frames.slice(frames.findIndex(({ byteLength }) => byteLength === 0) + 1));
    if (message.name !== "TRANSFER") return;
    const { topic, headers, body = new Uint8Array(0) } = message;
    if (headers?.part === 0) {
      this.#open.set(topic, { reader: new TopicDataReader(), hash: createHash("sha256"), messages: 0 });
    }
    const open = this.#open.get(topic);
    if (open === undefined) return;
    for (const record of open.reader.push(body)) {
      open.hash.update(contentOf(record));
      if (record.kind === "message") open.messages++;
    }
    if (headers?.final !== true) return;
    this.#open.delete(topic);
    const { hash, messages } = open;
    this.contents.set(topic, { epoch: headers?.epoch ?? 0, digest: hash.digest("hex").slice(0, 16), messages });
  }
}

/** All of it that a handoff must keep. */
function contentOf(record: TopicDataRecord): Uint8Array | string {
  if (record.kind === "message") return record.bytes;
  if (record.kind !== "topic") return JSON.stringify(record);
  const { epoch: _, ...topic } = record.topic;
  return JSON.stringify(topic);
}

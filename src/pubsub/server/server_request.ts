/** The parts of a request at a server: the envelope for the response, and the message. */
import type { InvalidMessage } from "../../wire/pubsub/decode_message.ts";
import type { Message, MessageOf } from "../../wire/pubsub/pubsub_messages.ts";

/** Frames before the header of a response: the peer's identity and everything up to the empty frame. */
export type Envelope = readonly Uint8Array[];

/** Requests about one topic and one client, for the store. */
export type ClientMessage = MessageOf<"SUBSCRIBE" | "UNSUBSCRIBE" | "GET" | "PUT" | "SEEK" | "INFO">;

const clientMessages: ReadonlySet<string> = new Set<ClientMessage["name"]>(
  ["PUT", "GET", "SUBSCRIBE", "UNSUBSCRIBE", "SEEK", "INFO"],
);
const nothing = new Uint8Array(0);

/**
 * Splits the frames of a ROUTER. Without an empty frame the envelope is the identity alone; the response gets an empty
 * frame anyway.
 */
export function splitEnvelope(frames: readonly Uint8Array[]): { envelope: Envelope; content: readonly Uint8Array[] } {
  for (let at = 1; at < frames.length; at++) {
    if (frames[at]?.byteLength === 0) return { envelope: frames.slice(0, at + 1), content: frames.slice(at + 1) };
  }
  return { envelope: [frames[0] ?? nothing, nothing], content: frames.slice(1) };
}

export function isClientMessage(message: Message | InvalidMessage): message is ClientMessage {
  return message.name !== null && clientMessages.has(message.name);
}

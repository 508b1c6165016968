/** A request as a server has it: who to answer, and what was asked. */
import type { InvalidMessage } from "../../wire/pubsub/decode_message.ts";
import type { Message, MessageOf } from "../../wire/pubsub/pubsub_messages.ts";

/** What goes before the header of the response: the peer's identity and all up to the empty frame. */
export type Envelope = readonly Uint8Array[];

/** What is about one topic and one client, and goes to the store. */
export type ClientMessage = MessageOf<"SUBSCRIBE" | "UNSUBSCRIBE" | "GET" | "PUT" | "SEEK" | "INFO">;

const nothing = new Uint8Array(0);

/** Splits what a ROUTER gives. Without an empty frame there is no envelope but the identity; the response gets one all the same. */
export function splitEnvelope(frames: readonly Uint8Array[]): { envelope: Envelope; content: readonly Uint8Array[] } {
  for (let at = 1; at < frames.length; at++) {
    if (frames[at]?.byteLength === 0) return { envelope: frames.slice(0, at + 1), content: frames.slice(at + 1) };
  }
  return { envelope: [frames[0] ?? nothing, nothing], content: frames.slice(1) };
}

export function isClientMessage(message: Message | InvalidMessage): message is ClientMessage {
  switch (message.name) {
    case "SUBSCRIBE":
    case "UNSUBSCRIBE":
    case "GET":
    case "PUT":
    case "SEEK":
    case "INFO":
      return true;
    default:
      return false;
  }
}

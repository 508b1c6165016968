/** A client's message as an operation of the store. Pure. */
import { batchMessagesMax, bodyBytesMax } from "../../wire/pubsub/message_limits.ts";
import type { ClientOperation } from "../../wire/pubsub/store_operations.ts";
import type { ClientMessage } from "./server_request.ts";

const nothing = new Uint8Array(0);

/** `wait`: a get is kept back until there is a message. */
export function operationOf(message: ClientMessage, { ticket, epoch, wait }: {
  readonly ticket: number;
  readonly epoch: number;
  readonly wait: boolean;
}): ClientOperation {
  const { topic, sender, lines } = message;
  const session = lines?.session ?? null;
  if (message.name === "PUT") {
    // Written out: a spread costs more than all the rest of it.
    return {
      kind: "put",
      ticket,
      topic,
      epoch,
      client: sender,
      session,
      registration: lines?.registration ?? 0,
      counter: message.counter,
      fromSession: lines?.fromSession ?? null,
      low: lines?.low ?? 0,
      after: lines?.after ?? null,
      msgId: lines?.msgId ?? null,
      bodies: message.batch ?? [message.body ?? nothing],
    };
  }
  const common = { ticket, topic, epoch, client: sender, session, registration: lines?.registration ?? 0 };
  switch (message.name) {
    case "GET":
      return {
        kind: "get",
        ...common,
        op: lines?.op ?? null,
        last: message.last,
        max: Math.min(Math.max(lines?.max ?? 1, 1), batchMessagesMax),
        maxBytes: Math.min(lines?.maxBytes ?? 0, bodyBytesMax),
        wait,
        peek: lines?.peek ?? false,
      };
    case "SEEK":
      return { kind: "seek", ...common, op: lines?.op ?? null, to: message.to };
    case "INFO":
      return { kind: "info", ...common };
    case "SUBSCRIBE":
      return { kind: "subscribe", ...common, op: lines?.op ?? null };
    case "UNSUBSCRIBE":
      return { kind: "unsubscribe", ...common, op: lines?.op ?? null };
  }
}

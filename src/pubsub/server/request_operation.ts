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
  const { topic, sender, headers } = message;
  const session = headers?.session ?? null;
  if (message.name === "PUT") {
    // Written out: a spread costs more than all the rest of it.
    return {
      kind: "put",
      ticket,
      topic,
      epoch,
      client: sender,
      session,
      registration: headers?.registration ?? 0,
      counter: message.counter,
      fromSession: headers?.fromSession ?? null,
      firstUnacked: headers?.firstUnacked ?? 0,
      after: headers?.after ?? null,
      msgId: headers?.msgId ?? null,
      bodies: message.batch ?? [message.body ?? nothing],
    };
  }
  const common = { ticket, topic, epoch, client: sender, session, registration: headers?.registration ?? 0 };
  switch (message.name) {
    case "GET":
      return {
        kind: "get",
        ...common,
        op: headers?.op ?? null,
        last: message.last,
        max: Math.min(Math.max(headers?.max ?? 1, 1), batchMessagesMax),
        maxBytes: Math.min(headers?.maxBytes ?? 0, bodyBytesMax),
        wait,
        peek: headers?.peek ?? false,
      };
    case "SEEK":
      return { kind: "seek", ...common, op: headers?.op ?? null, to: message.to };
    case "INFO":
      return { kind: "info", ...common };
    case "SUBSCRIBE":
      return { kind: "subscribe", ...common, op: headers?.op ?? null };
    case "UNSUBSCRIBE":
      return { kind: "unsubscribe", ...common, op: headers?.op ?? null };
  }
}

/** What a server responses, as messages. MessageHeaders are headers only to who has shown that it knows them. Pure. */
import { noMessageId } from "../../wire/pubsub/field_types.ts";
import { batchMessagesMax } from "../../wire/pubsub/message_limits.ts";
import type { MessageHeaders, MessageOf } from "../../wire/pubsub/pubsub_messages.ts";
import type { StatusCode } from "../../wire/pubsub/status_codes.ts";
import type { StoreResponse, TopicInfo } from "../../wire/pubsub/store_operations.ts";
import type { RequestAvailability } from "../ownership/topic_ownership.ts";
import { rangesOf } from "../store/decide_put.ts";
import type { ClientMessage } from "./server_request.ts";

export type Status = MessageOf<"STATUS">;

const encoder = new TextEncoder();
/** A sentence of an response, in characters. */
const reasonLengthMax = 1000;

/** An response without content: a code and a sentence. */
export function statusOf(
  server: string,
  asked: { readonly headers?: MessageHeaders | undefined },
  code: StatusCode,
  { reason = "", headers = {} }: { readonly reason?: string; readonly headers?: MessageHeaders } = {},
): Status {
  const status: { -readonly [Key in keyof Status]: Status[Key] } = { name: "STATUS", sender: server, status: code };
  if (asked.headers !== undefined) status.headers = headers;
  if (reason !== "") status.body = encoder.encode(reason.slice(0, reasonLengthMax).toWellFormed());
  return status;
}

/** The store's response. `epoch` is told to who asked by another one. */
export function responseOf(server: string, message: ClientMessage, response: StoreResponse, epoch: number): Status {
  const { code, ids } = response;
  // What most responses are is headers without a detour.
  if (
    code === "OK" && ids !== undefined && message.headers !== undefined && (message.headers.epoch ?? epoch) === epoch
  ) {
    return { name: "STATUS", sender: server, status: code, headers: { ids } };
  }
  const { messages = [] } = response;
  const known = message.headers !== undefined;
  const headers: Record<string, unknown> = {};
  if (known) {
    if (message.headers.epoch !== undefined && message.headers.epoch !== epoch) headers["epoch"] = epoch;
    if (response.missed !== undefined && response.missed > 0) headers["missed"] = response.missed;
    if (response.redelivered !== undefined && response.redelivered > 0) headers["redelivered"] = response.redelivered;
    if (response.ids !== undefined) headers["ids"] = response.ids;
    if (response.failedAt !== undefined) headers["failedAt"] = response.failedAt;
    if (response.registration !== undefined) headers["registration"] = response.registration;
    if (response.currentSession !== undefined) headers["currentSession"] = response.currentSession;
    if (response.info !== undefined) Object.assign(headers, infoHeaders(response.info));
  }
  if (code !== "OK" || message.name !== "GET") {
    // That there is no message is headers often, and says everything.
    const reason = code === "NO_MESSAGE" ? "" : response.reason;
    return statusOf(server, message, code, { reason, headers: headers as MessageHeaders });
  }
  const [first] = messages;
  const status: Status = { name: "STATUS", sender: server, status: "OK", messageId: first?.id ?? 0 };
  if (!known || message.headers.max === undefined) {
    if (first?.msgId !== null && first?.msgId !== undefined) headers["msgId"] = first.msgId;
    return { ...status, ...(known ? { headers: headers as MessageHeaders } : {}), body: first?.body };
  }
  if (messages.length === 1 && first?.msgId !== null && first?.msgId !== undefined) headers["msgId"] = first.msgId;
  headers["ids"] = rangesOf(messages.map(({ id }) => id));
  return {
    ...status,
    headers: headers as MessageHeaders,
    batch: messages.slice(0, batchMessagesMax).map(({ body }) => body),
  };
}

function infoHeaders({ position, first, end, pending, subscribers, bytes }: TopicInfo): MessageHeaders {
  return { position: position ?? noMessageId, first, end, pending, subscribers, bytes, state: "serving" };
}

/** Why a request was not let in: definitely not done. */
export function unavailableResponse(
  server: string,
  message: { readonly topic: string; readonly headers?: MessageHeaders | undefined },
  availability: Exclude<RequestAvailability, { kind: "serving" }>,
  endpointOf: (id: string) => string | null,
): Status {
  const topic = JSON.stringify(message.topic);
  switch (availability.kind) {
    case "elsewhere": {
      const { owner, epoch } = availability;
      if (owner === "") {
        return statusOf(server, message, "NOT_OWNER", { reason: `nobody has topic ${topic} at present` });
      }
      const endpoint = endpointOf(owner);
      const headers: MessageHeaders = { owner, epoch, ...(endpoint === null ? {} : { endpoint }) };
      return statusOf(server, message, "NOT_OWNER", { reason: `topic ${topic} belongs to ${owner}`, headers });
    }
    case "unassigned":
      return statusOf(server, message, "NOT_OWNER", { reason: `topic ${topic} was given to no server` });
    case "moving":
      return statusOf(server, message, "OVERLOADED", { reason: `topic ${topic} is on its way; ask again` });
    case "missing":
      return statusOf(server, message, "DAMAGED", {
        reason: `topic ${topic} belongs to this server, and its data is missing or damaged there`,
      });
    case "away":
      return statusOf(server, message, "OVERLOADED", { reason: "this server has no lease at present; ask again" });
  }
}

/** Instead of an response that was ready when the lease was over: somebody else may have gone on. */
export function unconfirmedResponse(server: string, message: ClientMessage, code: StatusCode): Status {
  const changes = message.name !== "GET" && message.name !== "INFO";
  if (code === "OK" && changes) {
    const reason = "it was stored, and the server's lease ended before that could be confirmed";
    return statusOf(server, message, "ERROR", { reason, headers: { unknown: true } });
  }
  return statusOf(server, message, "OVERLOADED", { reason: "this server has no lease at present; ask again" });
}

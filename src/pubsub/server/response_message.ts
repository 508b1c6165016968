/**
 * A server's responses as messages. A response has headers only if the request had some: then the client knows them.
 * Pure.
 */
import { noMessageId } from "../../wire/pubsub/field_types.ts";
import { batchMessagesMax } from "../../wire/pubsub/message_limits.ts";
import type { MessageHeaders, MessageOf } from "../../wire/pubsub/pubsub_messages.ts";
import type { StatusCode } from "../../wire/pubsub/status_codes.ts";
import type { StoreResponse, TopicInfo } from "../../wire/pubsub/store_operations.ts";
import type { RequestAvailability } from "../ownership/topic_ownership.ts";
import { idRangesOf } from "../store/decide_put.ts";
import type { ClientMessage } from "./server_request.ts";

export type Status = MessageOf<"STATUS">;

const encoder = new TextEncoder();
/** Limit of a reason, in characters. */
const reasonLengthMax = 1000;

/** A response without content: a code and a reason. */
export function makeStatus(
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

/** The store's response. `epoch` is included if the client sent another one. */
export function statusOfStoreResponse(
  server: string,
  message: ClientMessage,
  response: StoreResponse,
  epoch: number,
): Status {
  const { code, ids } = response;
  // Shortcut for the most frequent response.
  if (
    code === "OK" && ids !== undefined && message.headers !== undefined && (message.headers.epoch ?? epoch) === epoch
  ) {
    const headers = response.hasNoSubscriber === true ? { ids, subscribers: 0 } : { ids };
    return { name: "STATUS", sender: server, status: code, headers };
  }
  const { messages = [] } = response;
  const known = message.headers !== undefined;
  const headers: Record<string, unknown> = {};
  if (known) {
    if (message.headers.epoch !== undefined && message.headers.epoch !== epoch) headers["epoch"] = epoch;
    if (response.missed !== undefined && response.missed > 0) headers["missed"] = response.missed;
    if (response.redelivered !== undefined && response.redelivered > 0) headers["redelivered"] = response.redelivered;
    if (response.ids !== undefined) headers["ids"] = response.ids;
    if (response.hasNoSubscriber === true) headers["subscribers"] = 0;
    if (response.failedAt !== undefined) headers["failedAt"] = response.failedAt;
    if (response.registration !== undefined) headers["registration"] = response.registration;
    if (response.currentSession !== undefined) headers["currentSession"] = response.currentSession;
    if (response.info !== undefined) Object.assign(headers, infoHeaders(response.info));
  }
  if (code !== "OK" || message.name !== "GET") {
    // NO_MESSAGE is frequent and needs no reason.
    const reason = code === "NO_MESSAGE" ? "" : response.reason;
    return makeStatus(server, message, code, { reason, headers: headers as MessageHeaders });
  }
  const [first] = messages;
  const status: Status = { name: "STATUS", sender: server, status: "OK", messageId: first?.id ?? 0 };
  if (!known || message.headers.max === undefined) {
    if (first?.msgId !== null && first?.msgId !== undefined) headers["msgId"] = first.msgId;
    return { ...status, ...(known ? { headers: headers as MessageHeaders } : {}), body: first?.body };
  }
  if (messages.length === 1 && first?.msgId !== null && first?.msgId !== undefined) headers["msgId"] = first.msgId;
  headers["ids"] = idRangesOf(messages.map(({ id }) => id));
  return {
    ...status,
    headers: headers as MessageHeaders,
    batch: messages.slice(0, batchMessagesMax).map(({ body }) => body),
  };
}

function infoHeaders({ position, first, end, pending, subscribers, bytes }: TopicInfo): MessageHeaders {
  return { position: position ?? noMessageId, first, end, pending, subscribers, bytes, state: "serving" };
}

/** Explains why a request was not admitted: certainly nothing was done. */
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
        return makeStatus(server, message, "NOT_OWNER", { reason: `no server owns topic ${topic} at present` });
      }
      const endpoint = endpointOf(owner);
      const headers: MessageHeaders = { owner, epoch, ...(endpoint === null ? {} : { endpoint }) };
      return makeStatus(server, message, "NOT_OWNER", { reason: `topic ${topic} belongs to ${owner}`, headers });
    }
    case "unassigned":
      return makeStatus(server, message, "NOT_OWNER", { reason: `topic ${topic} is not assigned to a server` });
    case "moving":
      return makeStatus(server, message, "OVERLOADED", { reason: `topic ${topic} is moving; ask again` });
    case "missing":
      return makeStatus(server, message, "DAMAGED", {
        reason: `topic ${topic} belongs to this server, but its data is missing or damaged`,
        headers: { state: "missing" },
      });
    case "away":
      return makeStatus(server, message, "OVERLOADED", { reason: "this server has no lease at present; ask again" });
  }
}

/** Replaces a response that was ready only after the lease had ended: another server may own the topic by now. */
export function unconfirmedResponse(server: string, message: ClientMessage, code: StatusCode): Status {
  const changes = message.name !== "GET" && message.name !== "INFO";
  if (code === "OK" && changes) {
    const reason = "it was stored, but the server's lease ended before that could be confirmed";
    return makeStatus(server, message, "ERROR", { reason, headers: { unknown: true } });
  }
  return makeStatus(server, message, "OVERLOADED", { reason: "this server has no lease at present; ask again" });
}

/** What a server answers, as messages. MessageHeaders are said only to who has shown that it knows them. Pure. */
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
/** A sentence of an answer, in characters. */
const reasonLengthMax = 1000;

/** An answer without content: a code and a sentence. */
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

/** The store's answer. `epoch` is told to who asked by another one. */
export function answerOf(server: string, message: ClientMessage, answer: StoreResponse, epoch: number): Status {
  const { code, ids } = answer;
  // What most answers are is said without a detour.
  if (
    code === "OK" && ids !== undefined && message.headers !== undefined && (message.headers.epoch ?? epoch) === epoch
  ) {
    return { name: "STATUS", sender: server, status: code, headers: { ids } };
  }
  const { messages = [] } = answer;
  const known = message.headers !== undefined;
  const said: Record<string, unknown> = {};
  if (known) {
    if (message.headers.epoch !== undefined && message.headers.epoch !== epoch) said["epoch"] = epoch;
    if (answer.missed !== undefined && answer.missed > 0) said["missed"] = answer.missed;
    if (answer.redelivered !== undefined && answer.redelivered > 0) said["redelivered"] = answer.redelivered;
    if (answer.ids !== undefined) said["ids"] = answer.ids;
    if (answer.failedAt !== undefined) said["failedAt"] = answer.failedAt;
    if (answer.registration !== undefined) said["registration"] = answer.registration;
    if (answer.currentSession !== undefined) said["currentSession"] = answer.currentSession;
    if (answer.info !== undefined) Object.assign(said, infoHeaders(answer.info));
  }
  if (code !== "OK" || message.name !== "GET") {
    // That there is no message is said often, and says everything.
    const reason = code === "NO_MESSAGE" ? "" : answer.reason;
    return statusOf(server, message, code, { reason, headers: said as MessageHeaders });
  }
  const [first] = messages;
  const status: Status = { name: "STATUS", sender: server, status: "OK", messageId: first?.id ?? 0 };
  if (!known || message.headers.max === undefined) {
    if (first?.msgId !== null && first?.msgId !== undefined) said["msgId"] = first.msgId;
    return { ...status, ...(known ? { headers: said as MessageHeaders } : {}), body: first?.body };
  }
  if (messages.length === 1 && first?.msgId !== null && first?.msgId !== undefined) said["msgId"] = first.msgId;
  said["ids"] = rangesOf(messages.map(({ id }) => id));
  return {
    ...status,
    headers: said as MessageHeaders,
    batch: messages.slice(0, batchMessagesMax).map(({ body }) => body),
  };
}

function infoHeaders({ position, first, end, pending, subscribers, bytes }: TopicInfo): MessageHeaders {
  return { position: position ?? noMessageId, first, end, pending, subscribers, bytes, state: "serving" };
}

/** Why a request was not let in: definitely not done. */
export function unavailableAnswer(
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

/** Instead of an answer that was ready when the lease was over: somebody else may have gone on. */
export function unconfirmedAnswer(server: string, message: ClientMessage, code: StatusCode): Status {
  const changes = message.name !== "GET" && message.name !== "INFO";
  if (code === "OK" && changes) {
    const reason = "it was stored, and the server's lease ended before that could be confirmed";
    return statusOf(server, message, "ERROR", { reason, headers: { unknown: true } });
  }
  return statusOf(server, message, "OVERLOADED", { reason: "this server has no lease at present; ask again" });
}

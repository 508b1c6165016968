/** Responses to requests that the store did not execute, or whose result must not be sent. Pure. */
import type { PubsubHeaders } from "../wire/pubsub_messages.ts";
import type { StatusCode } from "../wire/status_codes.ts";
import type { TopicAvailability } from "../ownership/topic_state.ts";
import { makeStatusMessage, type ResponseStatusMessage } from "../status_message.ts";
import type { ClientRequestMessage } from "../store/thread/client_request.ts";

/** Explains to a client why its request was not admitted, and therefore certainly not executed. */
export function makeUnavailableTopicResponse(
  server: string,
  message: { readonly topic: string; readonly headers?: PubsubHeaders | undefined },
  availability: Exclude<TopicAvailability, { kind: "serving" }>,
  endpointOf: (id: string) => string | null,
): ResponseStatusMessage {
  const topic = JSON.stringify(message.topic);
  switch (availability.kind) {
    case "elsewhere": {
      const { owner, epoch } = availability;
      if (owner === "") {
        return makeStatusMessage(server, message, "NOT_OWNER", { reason: `no server owns topic ${topic} at present` });
      }
      const endpoint = endpointOf(owner);
      const headers: PubsubHeaders = { owner, epoch, ...(endpoint === null ? {} : { endpoint }) };
      return makeStatusMessage(server, message, "NOT_OWNER", { reason: `topic ${topic} belongs to ${owner}`, headers });
    }
    case "unassigned":
      return makeStatusMessage(server, message, "NOT_OWNER", { reason: `topic ${topic} is not assigned to a server` });
    case "moving": {
      const { why } = availability;
      const what = why === undefined ? "is moving" : `cannot be opened: ${why}`;
      return makeStatusMessage(server, message, "OVERLOADED", { reason: `topic ${topic} ${what}; ask again` });
    }
    case "missing":
      return makeStatusMessage(server, message, "DAMAGED", {
        reason: `topic ${topic} belongs to this server, but its data is missing or damaged`,
        headers: { state: "missing" },
      });
    case "away":
      return makeStatusMessage(server, message, "OVERLOADED", {
        reason: "this server has no lease at present; ask again",
      });
  }
}

/**
 * Returns a response that replaces one that was ready only after the lease had ended, because another server may own
 * the topic by then.
 */
export function replaceUnconfirmedResponse(
  server: string,
  message: ClientRequestMessage,
  code: StatusCode,
): ResponseStatusMessage {
  const changes = message.name !== "GET" && message.name !== "INFO";
  if (code === "OK" && changes) {
    const reason = "it was stored, but the server's lease ended before that could be confirmed";
    return makeStatusMessage(server, message, "ERROR", { reason, headers: { unknown: true } });
  }
  return makeStatusMessage(server, message, "OVERLOADED", { reason: "this server has no lease at present; ask again" });
}

/** What a server counts since its start. */
import { newRequestLatency, type RequestLatency } from "../request_latency.ts";
import { messageFields, type MessageName } from "../../wire/pubsub/pubsub_messages.ts";
import { type StatusCode, statusCodes } from "../../wire/pubsub/status_codes.ts";

export interface ServerCounters {
  /** Requests that were understood. */
  readonly requests: Record<MessageName, number>;
  /** Responses, by what they say. */
  readonly responses: Record<StatusCode, number>;
  /** Requests that made no sense. */
  refused: number;
  /** Responses that could not be sent: the peer does not read, or is gone. */
  responsesDropped: number;
  /** Of what the store has answered. */
  readonly latency: RequestLatency;
}

export function newServerCounters(): ServerCounters {
  return {
    requests: zeros(Object.keys(messageFields) as MessageName[]),
    responses: zeros(statusCodes),
    refused: 0,
    responsesDropped: 0,
    latency: newRequestLatency(),
  };
}

function zeros<Name extends string>(names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
}

/** Counters of a server since its start. */
import { newRequestLatency, type RequestLatency } from "../request_latency.ts";
import { messageFields, type MessageName } from "../../wire/pubsub/pubsub_messages.ts";
import { type StatusCode, statusCodes } from "../../wire/pubsub/status_codes.ts";

export interface ServerCounters {
  /** Valid requests by name. */
  readonly requests: Record<MessageName, number>;
  /** Responses by status. */
  readonly responses: Record<StatusCode, number>;
  /** Invalid requests. */
  refused: number;
  /** Responses that were not sent: the peer does not read, or has disconnected. */
  responsesDropped: number;
  /** Times from the arrival of a request to the store's response. */
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

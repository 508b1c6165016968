/** Counters of a proxy since its start. */
import { newRequestLatency, type RequestLatency } from "../request_latency.ts";
import type { StatusCode } from "../../wire/pubsub/status_codes.ts";

export interface ProxyCounters {
  /** Requests received, invalid ones included. */
  requests: number;
  /** Responses sent, by status: those of servers and those of the proxy. */
  readonly responses: Map<StatusCode, number>;
  /** Requests sent again: to another server, later, or because a connection was lost. */
  retries: number;
  /** Responses of servers that arrived after their request had ended. */
  lateResponses: number;
  /** Responses that were dropped because the client does not read or has disconnected. */
  undeliveredResponses: number;
  /** Messages that were dropped without a response: a STATUS, or a message with an endless envelope. */
  dropped: number;
  /** Connections to servers that were lost. */
  serversLost: number;
  /** Latency of forwarded requests, also of those that the proxy answered itself. */
  readonly latency: RequestLatency;
}

export function newProxyCounters(): ProxyCounters {
  const counts = { requests: 0, retries: 0, lateResponses: 0, undeliveredResponses: 0, dropped: 0, serversLost: 0 };
  return { ...counts, responses: new Map(), latency: newRequestLatency() };
}

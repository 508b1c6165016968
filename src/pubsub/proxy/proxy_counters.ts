/** What a proxy counts, from its start. */
import { newRequestLatency, type RequestLatency } from "../request_latency.ts";
import type { StatusCode } from "../../wire/pubsub/status_codes.ts";

export interface ProxyCounters {
  /** Requests that came, with those that make no sense. */
  requests: number;
  /** Answers that went out, by status; those of servers and the proxy's own. */
  readonly responses: Map<StatusCode, number>;
  /** Requests that were sent again: elsewhere, later, or because a connection was lost. */
  retries: number;
  /** Answers of servers that nobody waited for any more. */
  lateResponses: number;
  /** Answers that were dropped because the client does not read, or is gone. */
  undeliveredResponses: number;
  /** Messages that were dropped without an answer: a STATUS that nobody asked for, or no envelope. */
  dropped: number;
  /** Connections to servers that were lost. */
  serversLost: number;
  /** Of what was forwarded, whoever has answered it. */
  readonly latency: RequestLatency;
}

export function newProxyCounters(): ProxyCounters {
  const counts = { requests: 0, retries: 0, lateResponses: 0, undeliveredResponses: 0, dropped: 0, serversLost: 0 };
  return { ...counts, responses: new Map(), latency: newRequestLatency() };
}

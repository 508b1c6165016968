/** What /metrics says of a server. */
import { histograms, labelled, type Metric, metricsNamed } from "../../src/terminal/metrics_text.ts";
import type { TopicServer } from "../../src/pubsub/server/topic_server.ts";
import { socketMetrics } from "./socket_metrics.ts";

const { named, gauge, counter } = metricsNamed("baton_pubsub_server");

export async function serverMetrics(server: TopicServer): Promise<Metric[]> {
  const { requests, responses, refused, responsesDropped } = server.counters;
  const now = await server.statistics();
  return [
    gauge("serving", "1 while the server is announced and has its lease", server.isRegistered ? 1 : 0),
    gauge("draining", "1 while the server is given no new topics", server.isDraining ? 1 : 0),
    labelled("counter", named("requests_total"), "Requests that were understood", "name", requests),
    counter("invalid_requests_total", "Requests that made no sense", refused),
    labelled("counter", named("responses_total"), "Answers, by their status", "status", responses),
    counter(
      "responses_dropped_total",
      "Answers that could not be sent: the peer does not read, or is gone",
      responsesDropped,
    ),
    histograms(
      named("request_seconds"),
      "From the arrival of a request to its durable answer, gets that wait for a message left out",
      "name",
      server.counters.latency,
    ),
    gauge("requests_in_flight", "Requests at the store, gets that wait included", now.inFlight),
    gauge("gets_waiting", "Gets that are kept back until there is a message", now.pendingGets),
    gauge("requests_awaiting_admission", "Requests whose topic is being looked at", now.pendingAdmissions),
    gauge("topics_stored", "Topics with data here", now.topics),
    gauge("topics_served", "Topics that are served now", now.served),
    gauge("topics_handing_off", "Topics on their way to other servers", now.outgoingHandoffs),
    gauge("topics_receiving", "Topics on their way here", now.incomingTransfers),
    gauge("store_bytes", "What the store takes", now.usedBytes),
    gauge("disk_full", "1 while messages are refused because the disk is full", now.full === null ? 0 : 1),
    gauge(
      "disk_used_ratio",
      "The part of the nearer disk limit that is used; puts are refused from 0.95 on",
      now.diskShare,
    ),
    gauge(
      "clients_used_ratio",
      "The part of what a topic can know of clients that is used, of the fullest topic",
      now.clientsShare,
    ),
    counter("clients_forgotten_total", "Publishers that were forgotten to make room", now.clientsForgotten),
    gauge("damaged_rows", "Rows of the store that were found damaged since the start", now.damages),
    counter("commits_total", "Transactions of the store", now.commits),
    ...socketMetrics("baton_pubsub_server", now.socket),
    counter("unroutable_total", "Answers for peers that were gone", now.socket.unroutable),
  ];
}

/** Null when the server takes messages and gives them; a disk that is about to be full is told by disk_share, and by the log. */
export async function serverHealth(server: TopicServer): Promise<string | null> {
  if (!server.isRegistered) {
    return "the server has no lease: the coordination service does not answer, or has ended the session";
  }
  const { full } = await server.statistics();
  return full === null ? null : `messages are refused: ${full}`;
}

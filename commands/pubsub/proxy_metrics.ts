/** What /metrics says of a proxy. */
import { histograms, labelled, type Metric, metricsNamed } from "../../src/terminal/metrics_text.ts";
import type { TopicDirectory } from "../../src/pubsub/proxy/topic_directory.ts";
import type { PubsubProxy } from "../../src/pubsub/proxy/pubsub_proxy.ts";
import { socketMetrics } from "./socket_metrics.ts";

const { named, gauge, counter } = metricsNamed("baton_pubsub_proxy");

export function proxyMetrics(proxy: PubsubProxy, directory: TopicDirectory, nowMs: number): Metric[] {
  const { counters, inFlight, loads } = proxy;
  const links = [...proxy.links];
  const reported = (value: (load: { topics: number; reportedMs: number }) => number) =>
    Object.fromEntries(Array.from(loads.all, ([id, load]) => [id, value(load)]));
  const byServer = (value: (link: (typeof links)[number]) => number) =>
    Object.fromEntries(links.map((link) => [link.id, value(link)]));
  return [
    gauge("coordination_connected", "1 while the coordination service answers", directory.isConnected ? 1 : 0),
    gauge("servers", "Servers that are there", directory.servers.size),
    gauge("clients", "Connections of clients", proxy.connections),
    ...socketMetrics("baton_pubsub_proxy", proxy.load),
    counter("requests_total", "Messages that came from clients", counters.requests),
    labelled(
      "counter",
      named("responses_total"),
      "Answers, by their status",
      "status",
      Object.fromEntries(counters.responses),
    ),
    histograms(
      named("request_seconds"),
      "From the arrival of a request to its answer, gets that may wait for a message left out",
      "name",
      counters.latency,
    ),
    counter("requests_retried_total", "Times that a request was sent again, or was to be", counters.retries),
    counter("responses_late_total", "Answers of servers that nobody waited for any more", counters.lateResponses),
    counter(
      "responses_undelivered_total",
      "Answers dropped: the client does not read, or is gone",
      counters.undeliveredResponses,
    ),
    counter("messages_dropped_total", "Messages that get no answer: a STATUS, an endless envelope", counters.dropped),
    counter("servers_lost_total", "Connections to servers that were lost", counters.serversLost),
    gauge("requests_in_flight", "Requests without an answer", inFlight.requests),
    gauge("request_bytes_in_flight", "What they have in their messages", inFlight.bytes),
    labelled(
      "gauge",
      named("server_connected"),
      "1 while it is connected",
      "server",
      byServer((it) => it.isConnected ? 1 : 0),
    ),
    labelled(
      "gauge",
      named("server_requests_in_flight"),
      "Requests that a server has",
      "server",
      byServer((it) => it.sent),
    ),
    labelled(
      "gauge",
      named("server_requests_queued"),
      "Requests that wait to be sent to it",
      "server",
      byServer((it) => it.waiting),
    ),
    labelled("gauge", named("server_topics"), "Topics that it says it serves", "server", reported((it) => it.topics)),
    labelled(
      "gauge",
      named("server_report_age_seconds"),
      "How long ago it last said so",
      "server",
      reported((it) => Math.round((nowMs - it.reportedMs) / 1000)),
    ),
  ];
}

/** Null when there is somebody to send requests to. */
export function proxyHealth(directory: TopicDirectory): string | null {
  if (!directory.isConnected) {
    return "the coordination service does not answer; only topics that were used before are found";
  }
  return directory.servers.size > 0 ? null : "there is no server";
}

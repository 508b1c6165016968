/** Returns the metrics of the connections that a server or proxy has accepted. */
import { type Metric, metricFactory } from "../../src/base/terminal/metrics_text.ts";
import type { ZeroMqSocketCounters, ZeroMqSocketLoad } from "../../src/protocols/zeromq/socket_event.ts";

export function listeningSocketMetrics(prefix: string, socket: ZeroMqSocketLoad & ZeroMqSocketCounters): Metric[] {
  const { gauge, counter } = metricFactory(prefix);
  return [
    gauge("connections", "Connections accepted, in their handshake or after it", socket.connections),
    counter(
      "connections_refused_total",
      "Connections closed because as many were open as are allowed",
      socket.connectionsRefused,
    ),
    gauge("incoming_bytes", "Memory of messages that have not arrived completely", socket.inputBytes),
    counter(
      "connections_incomplete_closed_total",
      "Connections closed because that memory was short and their message did not arrive",
      socket.incompleteClosed,
    ),
    counter(
      "handshakes_failed_total",
      "Connections that ended before their handshake did",
      socket.handshakesFailed,
    ),
  ];
}

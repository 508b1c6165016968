import { expect, test } from "bun:test";
import { localDialAddress } from "../../../../src/operator/lists/fetch_metrics.ts";
import { parseProcessMetrics } from "../../../../src/operator/lists/parse_metrics.ts";
import { coordinationView } from "../../../../commands/coordination/coordination_view.ts";
import { pubsubView } from "../../../../commands/pubsub/pubsub_view.ts";
import { formatMetrics, metricFactory } from "../../../../src/base/terminal/metrics_text.ts";

const kinds = [...coordinationView.processes, ...pubsubView.processes];

test("counters of each label, and gauges, of the processes of baton", () => {
  const { counter, gauge } = metricFactory("baton_pubsub_server");
  const text = formatMetrics([
    gauge("requests_in_flight", "in flight", 4),
    counter("requests_total", "requests", { name: { PUT: 10, GET: 3 } }),
    gauge("disk_free_bytes", "free", 2 ** 33),
    gauge("other", "not shown", 1),
  ]);
  expect(parseProcessMetrics("db1:9102", text, kinds)).toEqual({
    ...{ address: "db1:9102", process: "pubsub server", error: null },
    counters: { "PUT requests": 10, "GET requests": 3 },
    gauges: { "in flight": 4 },
    disk_free_bytes: 2 ** 33,
  });
});

test("a counter without a label is the sum of its samples; other programs have none", () => {
  const text =
    "# TYPE baton_keeper_requests_total counter\nbaton_keeper_requests_total 12\nbaton_keeper_sessions NaN\n";
  expect(parseProcessMetrics("a:1", text, kinds)).toMatchObject({
    process: "keeper",
    counters: { requests: 12 },
    gauges: {},
    disk_free_bytes: null,
  });
  expect(parseProcessMetrics("a:1", "node_load1 0.5\n", kinds)).toBeNull();
});

test("a process that listens on all addresses is reached at the loopback address", () => {
  expect(localDialAddress({ kind: "tcp", host: "0.0.0.0", port: 1 })).toEqual({
    kind: "tcp",
    host: "127.0.0.1",
    port: 1,
  });
  expect(localDialAddress({ kind: "tcp", host: "::", port: 1 })).toEqual({ kind: "tcp", host: "::1", port: 1 });
  expect(localDialAddress({ kind: "tcp", host: "db1", port: 1 })).toEqual({ kind: "tcp", host: "db1", port: 1 });
  expect(localDialAddress({ kind: "unix", path: "/a" })).toEqual({ kind: "unix", path: "/a" });
});

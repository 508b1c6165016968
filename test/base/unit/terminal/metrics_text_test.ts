import { expect, test } from "bun:test";
import { formatMetrics, metricFactory } from "../../../../src/base/terminal/metrics_text.ts";
import { Histogram } from "../../../../src/base/support/histogram.ts";

test("numbers stand as Prometheus reads them, labels of any text included", () => {
  const { gauge, counter } = metricFactory("m");
  const text = formatMetrics([
    gauge("a", "with a \\ and\na line", 1.5),
    counter("b_total", "by name", { name: { 'x"\\\n': 2, y: Infinity } }),
  ]);
  expect(text).toBe(
    "# HELP m_a with a \\\\ and\\na line\n# TYPE m_a gauge\nm_a 1.5\n" +
      "# HELP m_b_total by name\n# TYPE m_b_total counter\n" +
      'm_b_total{name="x\\"\\\\\\n"} 2\nm_b_total{name="y"} +Inf\n',
  );
});

test("a histogram counts what was up to each bound, all of it, and the sum", () => {
  const histogram = new Histogram([0.001, 0.5, 10]);
  for (const seconds of [0, 0.001, 0.002, 0.5, 11, 100]) histogram.observe(seconds);
  expect(formatMetrics([metricFactory("m").histogram("h", "seconds", { name: { PUT: histogram } })])).toBe(
    "# HELP m_h seconds\n# TYPE m_h histogram\n" +
      'm_h_bucket{name="PUT",le="0.001"} 2\nm_h_bucket{name="PUT",le="0.5"} 4\nm_h_bucket{name="PUT",le="10"} 4\n' +
      'm_h_bucket{name="PUT",le="+Inf"} 6\nm_h_sum{name="PUT"} 111.503\nm_h_count{name="PUT"} 6\n',
  );
});

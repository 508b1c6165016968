import { expect, test } from "bun:test";
import { histogramMetric, labelledMetric, metricsText, singleMetric } from "../../../src/terminal/metrics_text.ts";
import { Histogram } from "../../../src/support/histogram.ts";

test("numbers stand as Prometheus reads them, labels of any text included", () => {
  const text = metricsText([
    singleMetric("gauge", "a", "with a \\ and\na line", 1.5),
    labelledMetric("counter", "b_total", "by name", "name", { 'x"\\\n': 2, y: Infinity }),
  ]);
  expect(text).toBe(
    "# HELP a with a \\\\ and\\na line\n# TYPE a gauge\na 1.5\n# HELP b_total by name\n# TYPE b_total counter\n" +
      'b_total{name="x\\"\\\\\\n"} 2\nb_total{name="y"} +Inf\n',
  );
});

test("a histogram counts what was up to each bound, all of it, and the sum", () => {
  const histogram = new Histogram([0.001, 0.5, 10]);
  for (const seconds of [0, 0.001, 0.002, 0.5, 11, 100]) histogram.observe(seconds);
  expect(metricsText([histogramMetric("h", "seconds", "name", { PUT: histogram })])).toBe(
    "# HELP h seconds\n# TYPE h histogram\n" +
      'h_bucket{name="PUT",le="0.001"} 2\nh_bucket{name="PUT",le="0.5"} 4\nh_bucket{name="PUT",le="10"} 4\n' +
      'h_bucket{name="PUT",le="+Inf"} 6\nh_sum{name="PUT"} 111.503\nh_count{name="PUT"} 6\n',
  );
});

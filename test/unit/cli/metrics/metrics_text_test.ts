import { expect, test } from "bun:test";
import { labelled, metricsText, single } from "../../../../src/cli/metrics/metrics_text.ts";

test("numbers stand as Prometheus reads them, labels of any text included", () => {
  const text = metricsText([
    single("gauge", "a", "with a \\ and\na line", 1.5),
    labelled("counter", "b_total", "by name", "name", { 'x"\\\n': 2, y: Infinity }),
  ]);
  expect(text).toBe(
    "# HELP a with a \\\\ and\\na line\n# TYPE a gauge\na 1.5\n# HELP b_total by name\n# TYPE b_total counter\n" +
      'b_total{name="x\\"\\\\\\n"} 2\nb_total{name="y"} +Inf\n',
  );
});

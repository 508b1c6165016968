import { expect, test } from "bun:test";
import { exporterMetrics } from "../../../../commands/operator/metrics.ts";
import { formatMetrics } from "../../../../src/base/terminal/metrics_text.ts";

test("servers that cannot be read: the exporter is there, and nothing else", () => {
  const lines = formatMetrics(exporterMetrics(false)).split("\n").filter((line) => !line.startsWith("#"));
  expect(lines).toEqual(["baton_up 0", expect.stringMatching(/^baton_build_info\{version="[^"]+",commit=""\} 1$/), ""]);
});

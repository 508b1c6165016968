/** Lists the metrics of `baton metrics`, by exporting a reading in which everything is used. */
import { buildObjectUseMetrics } from "../../src/coordination/view/use_metrics.ts";
import { exporterMetrics } from "../../commands/operator/metrics.ts";
import { listedObjectKinds, type ObjectsInUse } from "../../src/coordination/admin/list_in_use.ts";
import { countHistoryRecord, zeroHistoryCounters } from "../../src/coordination/history/history_counters.ts";
import { historyKinds } from "../../src/coordination/history/history_log.ts";
import { emptyHistoryRecord } from "../../src/coordination/history/history_record.ts";
import type { Metric } from "../../src/base/terminal/metrics_text.ts";

export interface ExportedMetric extends Pick<Metric, "name" | "type" | "help"> {
  readonly labels: readonly string[];
}

export function exportedMetrics(): ExportedMetric[] {
  const uses = Object.fromEntries(listedObjectKinds.map((kind) => [kind, [{ name: "n", holders: 1, waiters: 1 }]]));
  const counters = countHistoryRecord(zeroHistoryCounters, {
    ...emptyHistoryRecord("done", "s", 1),
    token: "1",
    beganMs: 2,
    endedMs: 3,
  });
  const used = buildObjectUseMetrics({
    atMs: 1,
    tookMs: 1,
    clockOffsetMs: 1,
    uses: uses as unknown as ObjectsInUse,
    histories: historyKinds.map((kind) => ({ kind, name: "n", counters, refusals: null })),
    schedules: [{
      name: "n",
      schedule_id: "i",
      schedule: "s",
      time_zone: "UTC",
      settled_until: "2026-01-01T00:00:00Z",
      next: "2026-01-01T00:00:01Z",
      overdue: true,
      running: null,
      retry: null,
    }],
  }, { namesMax: 10 });
  return [...exporterMetrics(true), ...used].map(({ name, type, help, samples }) => ({
    name,
    type,
    help,
    labels: [...new Set(samples.flatMap(({ labels = {} }) => Object.keys(labels)))],
  }));
}

/** Returns the names of metrics and labels in an expression that are not exported. */
export function findExpressionMistakes(expression: string, metrics: readonly ExportedMetric[]): string[] {
  const found = [...expression.matchAll(/\b(baton_\w+)(?:\{([^}]*)\})?/g)];
  return found.flatMap(([, name = "", selector = ""]) => {
    const metric = metrics.find((one) =>
      one.type === "histogram"
        ? ["_bucket", "_sum", "_count"].some((suffix) => one.name + suffix === name)
        : one.name === name
    );
    if (metric === undefined) return [`${name} is not exported`];
    const labels = [...selector.matchAll(/(\w+)\s*(?:=~|!=|!~|=)/g)].map(([, label = ""]) => label);
    return labels.filter((label) => !metric.labels.includes(label)).map((label) => `${name} has no label ${label}`);
  });
}

/** Parses the metrics of a process (Prometheus text format) into a row. Has no side effects. */
import type { MetricsProcessKind, ProcessMetricsRow } from "../../base/rows/process_row.ts";

const samplePattern = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;

/** Returns the row of a process; null if the text is not the metrics of baton. */
export function parseProcessMetrics(
  address: string,
  text: string,
  kinds: readonly MetricsProcessKind[],
): ProcessMetricsRow | null {
  const kind = kinds.find(({ prefix }) => text.includes(`\n${prefix}`) || text.startsWith(prefix));
  if (kind === undefined) return null;
  const counters: Record<string, number> = {};
  const gauges: Record<string, number> = {};
  let disk_free_bytes: number | null = null;
  for (const line of text.split("\n")) {
    const [, name = "", labels = "", value] = samplePattern.exec(line) ?? [];
    if (!name.startsWith(kind.prefix) || !Number.isFinite(Number(value))) continue;
    const suffix = name.slice(kind.prefix.length);
    if (suffix === "disk_free_bytes") disk_free_bytes = Number(value);
    const gauge = kind.gauges[suffix];
    const counter = kind.counters[suffix];
    if (gauge !== undefined) gauges[gauge] = Number(value);
    if (counter === undefined) continue;
    const label = counter.label === null ? "" : labelValue(labels, counter.label);
    const what = `${label} ${counter.what}`.trim();
    counters[what] = (counters[what] ?? 0) + Number(value);
  }
  return { address, process: kind.process, error: null, counters, gauges, disk_free_bytes };
}

function labelValue(labels: string, name: string): string {
  return new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1] ?? "";
}

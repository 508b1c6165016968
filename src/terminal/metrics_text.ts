/** Metrics in the text format of Prometheus (version 0.0.4). Pure. */

import type { Histogram } from "../support/histogram.ts";

export interface Sample {
  /** The suffix of the metric name, for the parts of a histogram. */
  readonly suffix?: "_bucket" | "_sum" | "_count";
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Metric {
  /** Letters, digits and `_`; the name of a counter ends with `_total`. */
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly samples: readonly Sample[];
}

export const metricsContentType = "text/plain; version=0.0.4; charset=utf-8";

export function metricsText(metrics: readonly Metric[]): string {
  let text = "";
  for (const { name, help, type, samples } of metrics) {
    text += `# HELP ${name} ${escapeText(help)}\n# TYPE ${name} ${type}\n`;
    for (const { suffix = "", labels = {}, value } of samples) {
      const pairs = Object.entries(labels).map(([label, content]) => `${label}="${escapeText(content, true)}"`);
      text += `${name}${suffix}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${formatNumber(value)}\n`;
    }
  }
  return text;
}

/** A metric with one value and no labels. */
export function singleMetric(type: Metric["type"], name: string, help: string, value: number): Metric {
  return { name, help, type, samples: [{ value }] };
}

/** Constructors for metrics whose names have the same prefix. */
export function metricFactory(prefix: string) {
  const named = (name: string) => `${prefix}_${name}`;
  return {
    named,
    gauge: (name: string, help: string, value: number) => singleMetric("gauge", named(name), help, value),
    counter: (name: string, help: string, value: number) => singleMetric("counter", named(name), help, value),
  };
}

/** A metric with one value for each value of a label. */
export function labelledMetric(
  type: Metric["type"],
  name: string,
  help: string,
  label: string,
  values: Readonly<Record<string, number>>,
): Metric {
  const samples = Object.entries(values).map(([content, value]) => ({ labels: { [label]: content }, value }));
  return { name, help, type, samples };
}

/** A histogram in seconds for each value of a label. */
export function histogramMetric(
  name: string,
  help: string,
  label: string,
  values: Readonly<Record<string, Histogram>>,
): Metric {
  const samples = Object.entries(values).flatMap(([content, histogram]): Sample[] => {
    const labels = { [label]: content };
    const counts = histogram.cumulative();
    const buckets = counts.map((value, at): Sample => ({
      suffix: "_bucket",
      labels: { ...labels, le: formatNumber(histogram.bounds[at] ?? Infinity) },
      value,
    }));
    return [
      ...buckets,
      { suffix: "_sum", labels, value: histogram.sum },
      { suffix: "_count", labels, value: counts.at(-1) ?? 0 },
    ];
  });
  return { name, help, type: "histogram", samples };
}

function escapeText(text: string, isLabel = false): string {
  const plain = text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
  return isLabel ? plain.replaceAll('"', '\\"') : plain;
}

function formatNumber(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  return Number.isFinite(value) ? String(value) : value > 0 ? "+Inf" : "-Inf";
}

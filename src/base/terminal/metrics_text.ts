/** Formats metrics in the text format of Prometheus (version 0.0.4). Pure. */

import type { Histogram } from "../support/histogram.ts";

export interface MetricSample {
  /** The suffix of the metric name, for the parts of a histogram. */
  readonly suffix?: "_bucket" | "_sum" | "_count";
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Metric {
  /** A name of letters, digits and `_`. The name of a counter ends with `_total`. */
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly samples: readonly MetricSample[];
}

export const metricsContentType = "text/plain; version=0.0.4; charset=utf-8";

export function formatMetrics(metrics: readonly Metric[]): string {
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

/** Measurements by a label and its value, such as `{ state: { waiting: 3, dead: 0 } }`. */
type ByLabel<Measured> = Readonly<Record<string, Readonly<Record<string, Measured>>>>;

/** Returns constructors for metrics whose names begin with `prefix`. */
export function metricFactory(prefix: string) {
  const metric = (type: Metric["type"], name: string, help: string, samples: readonly MetricSample[]): Metric => {
    return { name: `${prefix}_${name}`, help, type, samples };
  };
  return {
    metric,
    gauge: (name: string, help: string, value: number | ByLabel<number>) =>
      metric("gauge", name, help, samplesOf(value)),
    counter: (name: string, help: string, value: number | ByLabel<number>) =>
      metric("counter", name, help, samplesOf(value)),
    /** Makes a histogram metric, whose observed values are in seconds. */
    histogram: (name: string, help: string, histograms: ByLabel<Histogram>) =>
      metric("histogram", name, help, labelled(histograms).flatMap(bucketsOf)),
  };
}

function samplesOf(value: number | ByLabel<number>): MetricSample[] {
  if (typeof value === "number") return [{ value }];
  return labelled(value).map(([labels, value]) => ({ labels, value }));
}

function labelled<Measured>(values: ByLabel<Measured>): [Readonly<Record<string, string>>, Measured][] {
  return Object.entries(values).flatMap(([label, measured]) =>
    Object.entries(measured).map(([content, one]) => [{ [label]: content }, one] as [Record<string, string>, Measured])
  );
}

function bucketsOf([labels, histogram]: readonly [Readonly<Record<string, string>>, Histogram]): MetricSample[] {
  const counts = histogram.cumulative();
  const buckets = counts.map((value, at): MetricSample => ({
    suffix: "_bucket",
    labels: { ...labels, le: formatNumber(histogram.bounds[at] ?? Infinity) },
    value,
  }));
  return [
    ...buckets,
    { suffix: "_sum", labels, value: histogram.sum },
    { suffix: "_count", labels, value: counts.at(-1) ?? 0 },
  ];
}

function escapeText(text: string, isLabel = false): string {
  const plain = text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
  return isLabel ? plain.replaceAll('"', '\\"') : plain;
}

function formatNumber(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  return Number.isFinite(value) ? String(value) : value > 0 ? "+Inf" : "-Inf";
}

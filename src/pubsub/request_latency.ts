/** The latency of puts and gets at a server or a proxy, from the arrival of a request to its response. */
import { Histogram } from "../base/support/histogram.ts";

/**
 * The upper bounds of the histogram's buckets, in seconds. They range from a response from memory to a missed deadline.
 */
const boundsSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

const measuredRequests = ["PUT", "GET"] as const;
export type LatencyRequestName = (typeof measuredRequests)[number];

/** Histograms in seconds, by request name. */
export type RequestLatencyHistograms = Readonly<Record<LatencyRequestName, Histogram>>;

export function newRequestLatencyHistograms(): RequestLatencyHistograms {
  return { PUT: new Histogram(boundsSeconds), GET: new Histogram(boundsSeconds) };
}

/**
 * Records how long a put or get took. Ignores a get that may wait, because its time depends on when messages arrive.
 */
export function recordRequestLatency(
  latency: RequestLatencyHistograms,
  name: string,
  { ms, mayWait }: { ms: number; mayWait: boolean },
): void {
  if (mayWait || (name !== "PUT" && name !== "GET")) return;
  latency[name].observe(ms / 1000);
}

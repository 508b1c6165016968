/** Parses the metrics of baton's own processes (Prometheus text format) that `baton top` shows. Pure. */
import type { MetricsProcessName, TopProcess } from "./top_reading.ts";

interface ProcessKind {
  readonly process: MetricsProcessName;
  readonly prefix: string;
  /**
   * The counters by the suffix of their name. If `label` is set, each value of that label is shown as a separate
   * counter, such as `PUT requests`.
   */
  readonly counters: Readonly<Record<string, { readonly what: string; readonly label: string | null }>>;
  readonly gauges: Readonly<Record<string, string>>;
}

const kinds: readonly ProcessKind[] = [
  {
    process: "keeper",
    prefix: "baton_keeper_",
    counters: { requests_total: { what: "requests", label: null } },
    gauges: { requests_in_flight: "in flight", connections: "connections", sessions: "sessions", nodes: "nodes" },
  },
  {
    process: "pubsub server",
    prefix: "baton_pubsub_server_",
    counters: { requests_total: { what: "requests", label: "name" }, commits_total: { what: "commits", label: null } },
    gauges: { requests_in_flight: "in flight", topics_served: "topics", gets_waiting: "gets waiting" },
  },
  {
    process: "pubsub proxy",
    prefix: "baton_pubsub_proxy_",
    counters: { requests_total: { what: "requests", label: null } },
    gauges: { requests_in_flight: "in flight", clients: "clients", servers: "servers" },
  },
  {
    process: "retry",
    prefix: "baton_retry_",
    counters: { tries_total: { what: "tries", label: "state" } },
    gauges: { tries_in_flight: "in flight", dead_letters_pending: "dead letters pending" },
  },
];

const samplePattern = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;

/** Returns null if the text contains no metrics of a baton process. */
export function parseProcessMetrics(address: string, text: string): TopProcess | null {
  const kind = kinds.find(({ prefix }) => text.includes(`\n${prefix}`) || text.startsWith(prefix));
  if (kind === undefined) return null;
  const counters: Record<string, number> = {};
  const gauges: Record<string, number> = {};
  for (const line of text.split("\n")) {
    const [, name = "", labels = "", value] = samplePattern.exec(line) ?? [];
    if (!name.startsWith(kind.prefix) || !Number.isFinite(Number(value))) continue;
    const suffix = name.slice(kind.prefix.length);
    const gauge = kind.gauges[suffix];
    const counter = kind.counters[suffix];
    if (gauge !== undefined) gauges[gauge] = Number(value);
    if (counter === undefined) continue;
    const label = counter.label === null ? "" : labelValue(labels, counter.label);
    const what = `${label} ${counter.what}`.trim();
    counters[what] = (counters[what] ?? 0) + Number(value);
  }
  return { address, process: kind.process, error: null, counters, gauges };
}

function labelValue(labels: string, name: string): string {
  return new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1] ?? "";
}

/** What /metrics and /healthz say of a keeper. */
import { statfsSync } from "node:fs";
import { histograms, labelled, type Metric, metricsNamed } from "../../src/terminal/metrics_text.ts";
import type { StatusSource } from "../../src/terminal/status_page.ts";
import type { Keeper } from "../../src/keeper/lifecycle/start_keeper.ts";
import type { KeeperLimits } from "../../src/keeper/state/keeper_limits.ts";
import type { KeeperStatistics } from "../../src/keeper/protocol/keeper_report.ts";

const { named, gauge, counter } = metricsNamed("baton_keeper");

/** With less than this nothing may be stored that comes next. */
const freeBytesMin = 1 << 20;

export function keeperStatus(keeper: Pick<Keeper, "statistics" | "limits">, dataDir: string): StatusSource {
  return {
    health: () => healthOf(keeper.statistics(), dataDir),
    metrics: () => metricsOf(keeper.statistics(), keeper.limits),
  };
}

/** Reads and pings go on when it is not well. A keeper that has nothing to store does not notice that others fill its disk. */
function healthOf({ writable }: KeeperStatistics, dataDir: string): string | null {
  if (!writable) return "the disk refuses to store: writes are not answered";
  const { bsize, bavail } = statfsSync(dataDir);
  return bavail * bsize >= freeBytesMin ? null : `the disk is full: ${bavail * bsize} bytes are free in ${dataDir}`;
}

function metricsOf(now: KeeperStatistics, all: KeeperLimits): Metric[] {
  const { connectionsMax, sessionsMax, nodesMax, watchesMax, dataBytesMax } = all;
  const limits = {
    connections: connectionsMax,
    sessions: sessionsMax,
    nodes: nodesMax,
    watches: watchesMax,
    data_bytes: dataBytesMax,
  };
  return [
    gauge("writable", "0 while the disk refuses to store", now.writable ? 1 : 0),
    gauge("connections", "Open connections, those without a session included", now.connections),
    gauge("sessions", "Sessions, those whose client is away included", now.sessions),
    gauge("nodes", "Nodes", now.nodes),
    gauge("ephemerals", "Ephemeral nodes among them", now.ephemerals),
    gauge("watches", "Watches", now.watches),
    gauge("data_bytes", "What the nodes' paths, data and ACLs take", now.dataBytes),
    labelled("gauge", named("limit"), "How much of each there may be", "of", limits),
    gauge("requests_waiting", "Requests whose answers wait for the disk", now.outstanding),
    gauge("held_bytes", "Requests that are not whole or wait for their turn", now.heldBytes),
    gauge("unsent_bytes", "Answers that their clients have not taken", now.unsentBytes),
    counter("requests_total", "Requests, pings and greetings included", now.received),
    counter("commits_failed_total", "How often the disk refused to store", now.commitsFailed),
    histograms(named("commit_seconds"), "How long the disk took to store what came together", "to", {
      disk: now.commitSeconds,
    }),
    gauge("last_zxid", "The last transaction's number, as far as a floating-point number can tell", Number(now.zxid)),
  ];
}

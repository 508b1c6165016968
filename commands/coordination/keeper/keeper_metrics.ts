/** Provides the keeper's /metrics and /healthz pages. */
import { type Metric, metricFactory } from "../../../src/base/terminal/metrics_text.ts";
import type { StatusPageSource } from "../../../src/base/terminal/status_page.ts";
import type { Keeper } from "../../../src/coordination/keeper/lifecycle/start_keeper.ts";
import type { KeeperLimits } from "../../../src/coordination/keeper/state/keeper_limits.ts";
import { keeperDatabaseFileName } from "../../../src/coordination/keeper/storage/keeper_rows.ts";
import { freeDiskBytes } from "../../../src/base/storage/free_disk_space.ts";
import { whyStoreNotWritable } from "../../../src/base/storage/write_access.ts";
import { keeperNodeMetricsReader } from "./keeper_use.ts";
import type { KeeperStatistics } from "../../../src/coordination/keeper/protocol/keeper_report.ts";

const { gauge, counter, histogram } = metricFactory("baton_keeper");

/** If less space than this is free, in bytes, the disk counts as full. */
const freeBytesMin = 1 << 20;

export function keeperStatusSource(
  keeper: Pick<Keeper, "statistics" | "limits" | "readNode">,
  dataDir: string,
): StatusPageSource {
  const use = keeperNodeMetricsReader(keeper);
  return {
    health: () => healthOf(keeper.statistics(), dataDir),
    metrics: async () => [
      ...metricsOf(keeper.statistics(), keeper.limits),
      gauge("disk_free_bytes", "Bytes that can still be written to the disk", freeDiskBytes(dataDir)),
      ...await use(),
    ],
  };
}

/**
 * Returns the reason why the keeper is unhealthy; null if it is healthy. Checks the files and the free space, because a
 * keeper that writes nothing does not detect a full or read-only disk.
 */
function healthOf({ writable }: KeeperStatistics, dataDir: string): string | null {
  if (!writable) return "the disk cannot store data: writes are refused";
  const why = whyStoreNotWritable(dataDir, keeperDatabaseFileName);
  if (why !== null) return why;
  const free = freeDiskBytes(dataDir);
  return free >= freeBytesMin ? null : `the disk is full: ${free} bytes are free in ${dataDir}`;
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
    gauge("disk_full", "1 while the disk cannot store data", now.writable ? 0 : 1),
    gauge("connections", "Open connections, including those without a session", now.connections),
    gauge("sessions", "Sessions, including those without a connection", now.sessions),
    gauge("nodes", "Nodes", now.nodes),
    gauge("ephemerals", "Ephemeral nodes", now.ephemerals),
    gauge("watches", "Watches", now.watches),
    gauge("data_bytes", "Bytes of the nodes' paths, data and ACLs", now.dataBytes),
    gauge("limit", "The limit of each resource", { resource: limits }),
    gauge("requests_in_flight", "Requests whose responses wait for the disk", now.outstanding),
    gauge("read_buffer_bytes", "Bytes of incomplete and waiting requests", now.heldBytes),
    gauge("unsent_bytes", "Bytes of responses that clients have not read", now.unsentBytes),
    counter("requests_total", "Requests, including pings and connect requests", now.received),
    counter("commits_failed_total", "Commits that the disk refused", now.commitsFailed),
    histogram("commit_seconds", "Duration of a group commit", {
      to: {
        disk: now.commitSeconds,
      },
    }),
    gauge("last_zxid", "The zxid of the last transaction, rounded to a floating-point number", Number(now.zxid)),
  ];
}

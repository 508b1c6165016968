/** Provides the keeper's /metrics and /healthz pages. */
import { type Metric, metricFactory } from "../../../src/base/terminal/metrics_text.ts";
import type { StatusPageSource } from "../../../src/base/terminal/status_page.ts";
import type { Keeper } from "../../../src/coordination/keeper/lifecycle/start_keeper.ts";
import type { KeeperLimits } from "../../../src/coordination/keeper/state/keeper_limits.ts";
import { keeperDatabaseFileName } from "../../../src/coordination/keeper/storage/keeper_rows.ts";
import { freeDiskBytes } from "../../../src/base/storage/free_disk_space.ts";
import { whyStoreNotWritable } from "../../../src/base/storage/write_access.ts";
import type { KeeperStatistics } from "../../../src/coordination/keeper/protocol/keeper_report.ts";
import { setImmediate } from "node:timers/promises";
import { KeeperOperationError } from "../../../src/coordination/keeper/state/operation_error.ts";
import { type Clock, systemClock } from "../../../src/base/support/clock.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { ZooKeeperError } from "../../../src/protocols/zookeeper/zookeeper_error.ts";
import { CountedMetricNames } from "../../../src/coordination/view/counted_names.ts";
import { readObjectUseMetrics } from "../../../src/coordination/view/read_use.ts";
import { buildObjectUseMetrics, type ObjectUseMetricsReading } from "../../../src/coordination/view/use_metrics.ts";

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

const namesMax = 200;
/** How long a reading is reused, in milliseconds. Without this, frequent requests would slow down the keeper. */
const readingMs = 5000;
/** The number of nodes that are read in a row before the keeper handles clients' requests. */
const readsAtOnce = 100;

type NodeReader = Pick<Keeper, "readNode">;

/**
 * Adds the numbers of `baton metrics` to a keeper's own /metrics. Reads the nodes in memory without a session, and only
 * nodes that a client without credentials may read. Returns a function that reads the metrics of everything below
 * /baton.
 */
function keeperNodeMetricsReader(keeper: NodeReader, clock: Clock = systemClock()): () => Promise<Metric[]> {
  let latest: { readonly reading: Promise<ObjectUseMetricsReading>; readonly atMs: number } | null = null;
  const counted = new CountedMetricNames(namesMax);
  return async () => {
    if (latest === null || clock.now() - latest.atMs > readingMs) {
      latest = { reading: readObjectUseMetrics(readerOf(keeper), { root: "/baton", clock }), atMs: clock.now() };
    }
    return buildObjectUseMetrics(await latest.reading, { namesMax, counted });
  };
}

/** Returns a client that reads the keeper's nodes and rejects all other requests. */
function readerOf(keeper: NodeReader): ZooKeeper {
  let reads = 0;
  const read = async (path: string) => {
    if (++reads % readsAtOnce === 0) await setImmediate();
    try {
      return keeper.readNode(path);
    } catch (thrown) {
      if (!(thrown instanceof KeeperOperationError)) throw thrown;
      throw new ZooKeeperError(thrown.reason, `${path}: ${thrown.reason}`, { path });
    }
  };
  const refuse = () => Promise.reject(new ZooKeeperError("NOAUTH", "The metrics of a keeper only read"));
  return {
    session: {
      id: 0n,
      password: new Uint8Array(),
      timeoutMs: 0,
      state: "connected",
      connections: 1,
      leaseEndMs: () => 0,
      guard: () => () => {},
      describeOutage: () => "",
      ended: new AbortController().signal,
      subscribe: () => () => {},
    },
    acl: [],
    async exists(path) {
      return (await read(path).catch((thrown: ZooKeeperError) => {
        if (thrown.reason === "NONODE") return null;
        throw thrown;
      }))?.stat ?? null;
    },
    async getData(path) {
      const { data, stat } = await read(path);
      return { data: data ?? new Uint8Array(), stat };
    },
    async getChildren(path) {
      const { children, stat } = await read(path);
      return { children: [...children], stat };
    },
    create: refuse,
    delete: refuse,
    setData: refuse,
    getAcl: refuse,
    setAcl: refuse,
    multi: refuse,
    sync: () => Promise.resolve(),
    close: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/**
 * Adds the numbers of `baton metrics` to a keeper's own /metrics. Reads the nodes in memory without a session, and only
 * nodes that a client without credentials may read.
 */
import { setImmediate } from "node:timers/promises";
import type { Keeper } from "../../../src/coordination/keeper/lifecycle/start_keeper.ts";
import { KeeperOperationError } from "../../../src/coordination/keeper/state/operation_error.ts";
import { type Clock, systemClock } from "../../../src/base/support/clock.ts";
import type { Metric } from "../../../src/base/terminal/metrics_text.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { ZooKeeperError } from "../../../src/protocols/zookeeper/zookeeper_error.ts";
import { CountedMetricNames } from "../../../src/coordination/view/counted_names.ts";
import { readObjectUseMetrics } from "../../../src/coordination/view/read_use.ts";
import { buildObjectUseMetrics, type ObjectUseMetricsReading } from "../../../src/coordination/view/use_metrics.ts";

const namesMax = 200;
/** How long a reading is reused, in milliseconds. Without this, frequent requests would slow down the keeper. */
const readingMs = 5000;
/** The number of nodes that are read in a row before the keeper handles clients' requests. */
const readsAtOnce = 100;

type NodeReader = Pick<Keeper, "readNode">;

/** Returns a function that reads the metrics of everything below /baton. */
export function keeperNodeMetricsReader(keeper: NodeReader, clock: Clock = systemClock()): () => Promise<Metric[]> {
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

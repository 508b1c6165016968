/**
 * Reads what `baton top` and `baton ui` show: coordination data, this machine's message stores, and process metrics.
 */
import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { kindsInUse, listObjectsInUse } from "../../src/coordination/admin/list_in_use.ts";
import {
  readUseDetails,
  useDetailsKey,
  type UseHolder,
  type UseStatus,
} from "../../src/coordination/admin/use_status.ts";
import { nullIfNoNode } from "../../src/coordination/nodes/node_requests.ts";
import { readServerOverview, type ServerOverview } from "../../src/pubsub/admin/server_overview.ts";
import { PubsubPath } from "../../src/pubsub/ownership/pubsub_path.ts";
import type { CommandStore } from "../../src/retry/queue/store_methods.ts";
import { openCommandStore, type StoreLocation } from "../../src/retry/queue/open_retry_store.ts";
import { databaseName } from "../../src/retry/queue/sqlite/retry_database.ts";
import type { Address } from "../../src/base/sockets/connection.ts";
import { parseListenAddress } from "../../src/base/sockets/parse_address.ts";
import { BatonError, errorMessage } from "../../src/base/errors.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { pubsubServerRows, pubsubTopicRows } from "../pubsub/overview_tables.ts";
import { readStoreLocation } from "../../src/retry/queue/retry_store_location.ts";
import { fetchProcessMetrics } from "./fetch_metrics.ts";
import type { CommandCall } from "../command.ts";
import type { topSourcesSettings } from "./top_options.ts";
import type { ServicesReading, TopProcess, TopReading, TopStore, TopUse } from "./top_reading.ts";

/** How many objects have their holders read: those with the longest queues. */
const detailsMax = 500;

/** The part of a command call that names what to read. */
export type TopSourcesCall = Pick<CommandCall<typeof topSourcesSettings>, "values" | "sources">;

export class TopSources implements AsyncDisposable {
  readonly #call: TopSourcesCall;
  readonly #stores = new Map<string, { readonly name: string; readonly store: CommandStore }>();
  readonly #addresses: readonly { readonly address: Address; readonly isTyped: boolean }[];

  /** Throws USAGE and CONFIG for an address or a store name that cannot be used. */
  constructor(call: TopSourcesCall) {
    this.#call = call;
    this.#addresses = metricsAddresses(call);
    if (isStoreNamed(call)) readStoreLocation(call.values, call.sources);
  }

  /** Reads everything. Rejects if the coordination service fails; other failures become `problems` of the reading. */
  async read(zk: ZooKeeper, servers: string, signal: AbortSignal): Promise<TopReading> {
    const { root } = this.#call.values;
    const [uses, services] = await Promise.all([readUses(zk, root), this.readServices(zk, signal)]);
    const hidden = `holders are shown for ${detailsMax} of ${uses.length} rows`;
    const problems = [...(uses.length > detailsMax ? [hidden] : []), ...services.problems];
    return { ...services, servers, root, uses, problems };
  }

  /** Reads everything except locks, elections, barriers and pools. Rejects as `read` does. */
  async readServices(zk: ZooKeeper, signal: AbortSignal): Promise<ServicesReading> {
    const problems: string[] = [];
    const [overview, processes] = await Promise.all([
      readPubsub(zk, new PubsubPath(this.#call.values.root)),
      this.#readProcesses(signal),
    ]);
    const stores = await this.#readStores(problems);
    return {
      atMs: Date.now(),
      stores,
      processes,
      problems,
      topics: pubsubTopicRows(overview).sort((a, b) => a.topic < b.topic ? -1 : 1),
      pubsubServers: pubsubServerRows(overview),
    };
  }

  /** Returns the store that the last reading found in a folder, or null. */
  storeAt(folder: string): { readonly name: string; readonly store: CommandStore } | null {
    return this.#stores.get(folder) ?? null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { store } of this.#stores.values()) await store[Symbol.asyncDispose]();
    this.#stores.clear();
  }

  /** Reads the processes. One that does not respond is left out, unless the user named it with --metrics. */
  async #readProcesses(signal: AbortSignal): Promise<TopProcess[]> {
    const read = await Promise.all(
      this.#addresses.map(async ({ address, isTyped }) => ({
        process: await fetchProcessMetrics(address, signal),
        isTyped,
      })),
    );
    return read.filter(({ process, isTyped }) => process.error === null || isTyped).map(({ process }) => process);
  }

  async #readStores(problems: string[]): Promise<TopStore[]> {
    const found: TopStore[] = [];
    for (const location of storesOf(this.#call)) {
      try {
        found.push(await this.#readStore(location));
      } catch (thrown) {
        await this.#stores.get(location.where)?.store[Symbol.asyncDispose]();
        this.#stores.delete(location.where);
        problems.push(errorMessage(thrown));
      }
    }
    return found;
  }

  async #readStore(location: StoreLocation): Promise<TopStore> {
    const { name, where } = location;
    const store = this.#stores.get(where)?.store ?? await openCommandStore(location, { mustExist: true });
    this.#stores.set(where, { name, store });
    const totals = await store.read("totals");
    return {
      name,
      folder: where,
      isPaused: await store.read("isPaused"),
      waiting: totals.waiting.count,
      inFlight: totals.in_flight.count,
      dead: totals.dead.count,
      done: totals.done.count,
      ...await store.read("waitingTimes"),
    };
  }
}

async function readUses(zk: ZooKeeper, root: string): Promise<TopUse[]> {
  const found = await listObjectsInUse(zk, { root });
  const details = await readUseDetails(zk, found, { root, max: detailsMax });
  return kindsInUse.flatMap((kind) =>
    found[kind].filter(({ holders, waiters }) => holders !== 0 || waiters !== 0).map((one): TopUse => {
      const status = details.get(useDetailsKey(kind, one.name));
      const holder = status?.holders[0] ?? (kind === "pool" ? firstJob(details, one.name) : null);
      return { kind, ...one, holder, next: status?.waiters[0] ?? null };
    })
  );
}

/** Returns the process with a pool's oldest job. Jobs hold the locks of their items. */
function firstJob(details: ReadonlyMap<string, UseStatus>, pool: string): UseHolder | null {
  const key = useDetailsKey("lock", `${pool}/`);
  const jobs = [...details].flatMap(([name, { holders }]) => name.startsWith(key) ? holders : []);
  return jobs.sort((a, b) => a.sinceMs - b.sinceMs)[0] ?? null;
}

async function readPubsub(zk: ZooKeeper, path: PubsubPath): Promise<ServerOverview[]> {
  if (await zk.exists(path.base) === null) return [];
  // This list is read only so that a client that caches reads notices a new shard.
  const [, overview] = await Promise.all([nullIfNoNode(zk.getChildren(path.topics)), readServerOverview(zk, path)]);
  return overview;
}

const isStoreNamed = ({ sources: { flags } }: TopSourcesCall) => flags.has("retryName") || flags.has("retryStore");

/** Returns the store that --store or --name names, or else the configured store and all stores beside it. */
function storesOf(call: TopSourcesCall): StoreLocation[] {
  const { values, sources } = call;
  if (isStoreNamed(call)) return [readStoreLocation(values, sources)];
  try {
    const configured = readStoreLocation(values, sources);
    if (configured.folder === null) return [configured];
    const parent = dirname(configured.folder);
    const names = values.retryStore === undefined ? foldersIn(parent) : [basename(configured.folder)];
    return names.map((name) => ({ name, folder: join(parent, name) }))
      .filter(({ folder }) => existsSync(join(folder, databaseName)))
      .map(({ name, folder }) => ({
        name: values.retryStore === undefined ? name : configured.name,
        folder,
        where: folder,
        database: null,
      }));
  } catch {
    return []; // this user has no home directory, and so no stores
  }
}

function foldersIn(parent: string): string[] {
  try {
    return readdirSync(parent).sort();
  } catch {
    return [];
  }
}

/** Returns the addresses of --metrics, or else the metrics addresses of this machine's configuration. */
function metricsAddresses(
  { values, sources }: TopSourcesCall,
): { readonly address: Address; readonly isTyped: boolean }[] {
  const isTyped = sources.flags.has("metrics");
  const configured = [values.keeperMetricsListen, values.pubsubMetricsListen, values.retryMetricsListen];
  const texts = values.metrics ?? configured.filter((text) => text !== undefined);
  return [...new Set(texts)].map((text) => {
    const address = parseListenAddress(text);
    if (address !== null) return { address, isTyped };
    throw new BatonError("USAGE", `--metrics: "${text}" is no address: write host:port, :port or unix:/absolute/path`);
  });
}

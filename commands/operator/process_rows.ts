/** Reads the rows of all processes that serve /metrics, whatever their product is. */
import { flagSetting, type SettingTable } from "../../src/base/config/setting.ts";
import { listType } from "../../src/base/config/value_types.ts";
import { BatonError } from "../../src/base/errors.ts";
import type { MetricsProcessKind } from "../../src/base/rows/process_row.ts";
import type { Address } from "../../src/base/sockets/connection.ts";
import { parseListenAddress } from "../../src/base/sockets/parse_address.ts";
import type { ProductView, RowSource } from "../product.ts";

export const metricsAddressSettings = {
  metrics: flagSetting("--metrics", listType("host:port|unix:PATH,…"), {
    once: true,
    help: "addresses of keepers, servers, proxies and retry processors that serve /metrics",
    unset: "the metrics_listen addresses of the configuration that respond",
  }),
} satisfies SettingTable;

interface ProcessesCall {
  readonly values: { readonly metrics?: readonly string[] | undefined };
}

export function openProcessRows({ values }: ProcessesCall, views: readonly ProductView[]): RowSource {
  const kinds = views.flatMap(({ processes }) => processes);
  const isNamed = values.metrics !== undefined;
  const configured = views.flatMap((view) => view.metricsAddresses(values)).filter((text) => text !== undefined);
  const addresses = [...new Set(values.metrics ?? configured)].map(parseAddress);
  return {
    read: async (_zk, { signal }) => ({
      rows: { process: await readProcesses(addresses, { kinds, isNamed, signal }) },
    }),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/**
 * Reads the processes at these addresses. A process that does not respond has no row, unless the user named its
 * address.
 */
async function readProcesses(
  addresses: readonly Address[],
  { kinds, isNamed, signal }: {
    readonly kinds: readonly MetricsProcessKind[];
    readonly isNamed: boolean;
    readonly signal: AbortSignal;
  },
) {
  if (addresses.length === 0) return [];
  const { fetchProcessMetrics } = await import("../../src/operator/lists/fetch_metrics.ts");
  const read = await Promise.all(addresses.map((address) => fetchProcessMetrics(address, { kinds, signal })));
  return read.filter(({ error }) => error === null || isNamed);
}

function parseAddress(text: string): Address {
  const address = parseListenAddress(text);
  if (address !== null) return address;
  throw new BatonError(
    "USAGE",
    `--metrics: "${text}" is not an address: write host:port, :port or unix:/absolute/path`,
  );
}

/** Provides the rows of message stores, and the page's requests about them. */
import type { SettingTable } from "../../src/base/config/setting.ts";
import type { MetricsProcessKind } from "../../src/base/rows/process_row.ts";
import {
  retryProcessorSettings,
  retryRedactSettings,
  retryStoreSettings,
} from "../../src/retry/settings/retry_settings.ts";
import type { FoundStores } from "../../src/retry/view/found_stores.ts";
import { defineView, type ProductViewCall, type RowSource, withoutFlag } from "../product.ts";

const settings = {
  retryName: retryStoreSettings.retryName,
  retryStore: retryStoreSettings.retryStore,
  retryMetricsListen: withoutFlag(retryProcessorSettings.retryMetricsListen),
} satisfies SettingTable;

const retryProcess: MetricsProcessKind = {
  process: "retry",
  prefix: "baton_retry_",
  counters: { tries_total: { what: "tries", label: "state" } },
  gauges: { tries_in_flight: "in flight", dead_letters_pending: "dead letters pending" },
};

export const retryView = defineView({
  kinds: ["store"],
  settings,
  pageSettings: retryRedactSettings,
  processes: [retryProcess],
  metricsAddresses: ({ retryMetricsListen }) => [retryMetricsListen],
  async open(call: ProductViewCall<typeof settings>) {
    const { FoundStores } = await import("../../src/retry/view/found_stores.ts");
    return storeSource(new FoundStores(call));
  },
  async page({ values, sources }, source) {
    const { retryPageRequests } = await import("./store_page_requests.ts");
    const { configuredRedaction } = await import("../../src/retry/dead_letters/redaction.ts");
    return retryPageRequests((source as StoreSource).stores, configuredRedaction(values, sources));
  },
});

interface StoreSource extends RowSource {
  readonly stores: FoundStores;
}

const storeSource = (stores: FoundStores): StoreSource => ({
  stores,
  async read() {
    const { rows, problems } = await stores.read();
    return { rows: { store: rows }, problems };
  },
  [Symbol.asyncDispose]: () => stores[Symbol.asyncDispose](),
});

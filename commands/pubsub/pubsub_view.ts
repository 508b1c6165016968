/** Provides the rows of topics and servers, the metrics of their processes, and the page's requests about them. */
import type { SettingTable } from "../../src/base/config/setting.ts";
import type { MetricsProcessKind } from "../../src/base/rows/process_row.ts";
import { pubsubKeySettings, pubsubServiceSettings } from "../../src/pubsub/settings/pubsub_settings.ts";
import { defineView, type ProductViewCall, type RowSource, withoutFlag } from "../product.ts";

const settings = {
  pubsubMetricsListen: withoutFlag(pubsubServiceSettings.pubsubMetricsListen),
} satisfies SettingTable;

const processes: readonly MetricsProcessKind[] = [
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
];

export const pubsubView = defineView({
  kinds: ["topic", "server"],
  settings,
  pageSettings: pubsubKeySettings,
  processes,
  metricsAddresses: ({ pubsubMetricsListen }) => [pubsubMetricsListen],
  open: ({ values: { root } }: ProductViewCall<typeof settings>) => Promise.resolve(rowsBelow(root)),
  async page({ values: { root, pubsubKey } }) {
    const { readPubsubServiceSecurity } = await import("./service_security.ts");
    const { pubsubPageRequests } = await import("./topic_page_requests.ts");
    const { PubsubPath } = await import("../../src/pubsub/ownership/pubsub_path.ts");
    const socket = readPubsubServiceSecurity({ pubsubKey })?.internalDialOptions;
    return pubsubPageRequests({ path: new PubsubPath(root), socket });
  },
});

const rowsBelow = (root: string): RowSource => ({
  async read(zk, { kinds }) {
    const { readOverviewRows } = await import("../../src/pubsub/view/overview_rows.ts");
    return await readOverviewRows(zk, root, kinds);
  },
  [Symbol.asyncDispose]: () => Promise.resolve(),
});

/** Reads the rows of locks, elections, barriers, gates, pools and schedules. */
import type { MetricsProcessKind } from "../../src/base/rows/process_row.ts";
import type { SettingTable } from "../../src/base/config/setting.ts";
import { keeperSettings } from "../../src/coordination/settings/command_settings.ts";
import { defineView, type ProductViewCall, type RowSource, withoutFlag } from "../product.ts";

const settings = { keeperMetricsListen: withoutFlag(keeperSettings.keeperMetricsListen) } satisfies SettingTable;

const keeperProcess: MetricsProcessKind = {
  process: "keeper",
  prefix: "baton_keeper_",
  counters: { requests_total: { what: "requests", label: null } },
  gauges: { requests_in_flight: "in flight", connections: "connections", sessions: "sessions", nodes: "nodes" },
};

export const coordinationView = defineView({
  kinds: ["lock", "election", "barrier", "gate", "pool", "schedule"],
  settings,
  pageSettings: {},
  processes: [keeperProcess],
  metricsAddresses: ({ keeperMetricsListen }) => [keeperMetricsListen],
  open: ({ values: { root } }: ProductViewCall<typeof settings>) => Promise.resolve(rowsBelow(root)),
  async page({ values: { root } }) {
    return (await import("./lock_page_requests.ts")).coordinationPageRequests(root);
  },
  async metrics({ root, namesMax, clock }) {
    const { CountedMetricNames } = await import("../../src/coordination/view/counted_names.ts");
    const { readObjectUseMetrics } = await import("../../src/coordination/view/read_use.ts");
    const { buildObjectUseMetrics } = await import("../../src/coordination/view/use_metrics.ts");
    const counted = new CountedMetricNames(namesMax);
    return async (zk) => buildObjectUseMetrics(await readObjectUseMetrics(zk, { root, clock }), { namesMax, counted });
  },
});

/** Returns the source of the rows below a root. Each of its functions loads only the code that it needs. */
const rowsBelow = (root: string): RowSource => ({
  async read(zk, { interop, kinds, all, long }) {
    const { readInteropLockRows, readObjectRows } = await import("../../src/coordination/view/read_rows.ts");
    if (interop !== undefined) return await readInteropLockRows(zk, { ...interop, all });
    return await readObjectRows(zk, { root, kinds, all, long });
  },
  async *follow(zk, options) {
    const { followObjectRows } = await import("../../src/coordination/view/followed_rows.ts");
    yield* followObjectRows(zk, { root, ...options });
  },
  async details(zk, object) {
    const { readObjectDetails } = await import("../../src/coordination/admin/object_details.ts");
    return await readObjectDetails(zk, { root, ...object });
  },
  async find(zk, name) {
    const { findObjectKinds } = await import("../../src/coordination/admin/object_details.ts");
    return await findObjectKinds(zk, name, root);
  },
  [Symbol.asyncDispose]: () => Promise.resolve(),
});

/** Reads the rows of locks, elections, barriers, gates, pools and schedules. */
import type { ProcessKind } from "../../src/base/rows/process_row.ts";
import type { SettingTable } from "../../src/base/config/setting.ts";
import { keeperSettings } from "../../src/coordination/settings/command_settings.ts";
import { defineView, type RowSource, type ViewCall, withoutFlag } from "../product.ts";

const settings = { keeperMetricsListen: withoutFlag(keeperSettings.keeperMetricsListen) } satisfies SettingTable;

const keeperProcess: ProcessKind = {
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
  open: ({ values: { root } }: ViewCall<typeof settings>) => Promise.resolve(rowsBelow(root)),
  async page({ values: { root } }) {
    return (await import("./lock_page_requests.ts")).coordinationRequests(root);
  },
  async metrics({ root, namesMax, clock }) {
    const { CountedMetricNames } = await import("../../src/coordination/view/counted_names.ts");
    const { readUseForMetrics } = await import("../../src/coordination/view/read_use.ts");
    const { buildUseMetrics } = await import("../../src/coordination/view/use_metrics.ts");
    const counted = new CountedMetricNames(namesMax);
    return async (zk) => buildUseMetrics(await readUseForMetrics(zk, { root, clock }), { namesMax, counted });
  },
});

/** Reads rows below a root. Each function loads only the code that it needs. */
const rowsBelow = (root: string): RowSource => ({
  async read(zk, { interop, kinds, all, long }) {
    const { readInteropRows, readRows } = await import("../../src/coordination/view/read_rows.ts");
    if (interop !== undefined) return await readInteropRows(zk, { ...interop, all });
    return await readRows(zk, { root, kinds, all, long });
  },
  async *follow(zk, options) {
    const { followRows } = await import("../../src/coordination/view/followed_rows.ts");
    yield* followRows(zk, { root, ...options });
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

/** The rows of locks, elections, barriers, gates, pools and schedules. */
import type { ProcessKind } from "../../src/base/rows/process_row.ts";
import { rowKinds } from "../../src/base/rows/row_kinds.ts";
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
  settings,
  pageSettings: {},
  processes: [keeperProcess],
  metricsAddresses: ({ keeperMetricsListen }) => [keeperMetricsListen],
  open: ({ values: { root } }: ViewCall<typeof settings>) => openRows(root),
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

/** Loads the readers of the present, but not those of the page. */
async function openRows(root: string): Promise<RowSource> {
  const { findObjectKinds, readObjectDetails } = await import("../../src/coordination/admin/object_details.ts");
  const { readInteropRows, readRows } = await import("../../src/coordination/view/read_rows.ts");
  return {
    read: (zk, request) =>
      request.interop === undefined
        ? readRows(zk, { root, ...request, kinds: rowKinds.filter((kind) => request.kinds.includes(kind)) })
        : readInteropRows(zk, { ...request.interop, all: request.all }),
    async *follow(zk, options) {
      const { followRows } = await import("../../src/coordination/view/followed_rows.ts");
      yield* followRows(zk, { root, ...options });
    },
    details: (zk, object) => readObjectDetails(zk, { root, ...object }),
    find: (zk, name) => findObjectKinds(zk, name, root),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

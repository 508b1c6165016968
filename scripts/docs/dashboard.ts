/** Builds docs/examples/grafana_dashboard.json, in Grafana's classic format, which every version imports. */

interface Query {
  readonly expr: string;
  /** What the legend shows: `{{label}}` is its value. */
  readonly legend: string;
}

interface PanelText {
  readonly title: string;
  readonly type: "stat" | "timeseries" | "table";
  /** Width in columns of the grid, of 24. */
  readonly width: number;
  readonly unit?: string;
  /** A stat is red from this value on. */
  readonly redFrom?: number;
  readonly queries: readonly Query[];
}

const failedInADay = 'sum(increase(baton_lock_ends_total{result=~"failed|lost"}[24h])) or vector(0)';
const selected = '{name=~"$name"}';

export const dashboardRows: readonly { readonly title: string; readonly panels: readonly PanelText[] }[] = [
  {
    title: "Now",
    panels: [
      stat("Servers can be read", "min(baton_up)"),
      stat("Locks in use", "count(baton_lock_holders > 0) or vector(0)"),
      stat("Calls that wait", "sum(baton_lock_waiters) or vector(0)"),
      stat("Ticks overdue", "sum(baton_tick_overdue) or vector(0)", { redFrom: 1 }),
      stat("Failed and lost, 24 h", failedInADay, { redFrom: 1 }),
      stat("Clock offset", "max(abs(baton_clock_offset_seconds))", { redFrom: 5, unit: "s" }),
    ],
  },
  {
    title: "Locks",
    panels: [
      series("Holders", [{ expr: `baton_lock_holders${selected}`, legend: "{{name}}" }]),
      series("Waiters", [{ expr: `baton_lock_waiters${selected}`, legend: "{{name}}" }]),
      series(
        "Waiting time, 95 %",
        [{ expr: percentile("baton_lock_wait_seconds", "le, name"), legend: "{{name}}" }],
        "s",
      ),
      series(
        "Holding time, 95 %",
        [{ expr: percentile("baton_lock_hold_seconds", "le, name"), legend: "{{name}}" }],
        "s",
      ),
      series("Ends in an hour", [{
        expr: `sum by (result) (increase(baton_lock_ends_total${selected}[1h]))`,
        legend: "{{result}}",
      }]),
      series("Refused calls in an hour", [{
        expr: `increase(baton_lock_refused_total${selected}[1h])`,
        legend: "{{name}}",
      }]),
    ],
  },
  {
    title: "Ticks",
    panels: [
      {
        title: "Schedules",
        type: "table",
        width: 12,
        unit: "dateTimeFromNow",
        queries: [
          { expr: `baton_tick_next_timestamp_seconds${selected} * 1000`, legend: "next" },
          { expr: `baton_lock_last_success_timestamp_seconds${selected} * 1000`, legend: "last success" },
        ],
      },
      series("Late by, 95 %", [{ expr: percentile("baton_tick_late_seconds", "le, name"), legend: "{{name}}" }], "s"),
    ],
  },
  {
    title: "Elections, barriers, pools",
    panels: [
      series("Leaders", [{ expr: `baton_election_leaders${selected}`, legend: "{{name}}" }]),
      series("Candidates", [{ expr: `baton_election_candidates${selected}`, legend: "{{name}}" }]),
      series("Barriers", [
        { expr: `baton_barrier_members${selected}`, legend: "{{name}} runs" },
        { expr: `baton_barrier_waiters${selected}`, legend: "{{name}} waits" },
      ]),
      series("Pools", [
        { expr: `baton_pool_jobs${selected}`, legend: "{{name}} runs" },
        { expr: `baton_pool_waiters${selected}`, legend: "{{name}} waits" },
      ]),
    ],
  },
];

function percentile(metric: string, by: string): string {
  return `histogram_quantile(0.95, sum by (${by}) (rate(${metric}_bucket${selected}[$__rate_interval])))`;
}

function stat(title: string, expr: string, more: Pick<PanelText, "redFrom" | "unit"> = {}): PanelText {
  return { title, type: "stat", width: 4, queries: [{ expr, legend: "" }], ...more };
}

function series(title: string, queries: readonly Query[], unit?: string): PanelText {
  return { title, type: "timeseries", width: 12, queries, ...(unit === undefined ? {} : { unit }) };
}

const columns = 24;
const heights = { stat: 4, timeseries: 8, table: 8 } as const;
const datasource = { type: "prometheus", uid: "${DS_PROMETHEUS}" } as const;

interface Place {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

export interface DashboardPanel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: Place;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

/** Places the panels of each row side by side, and wraps them when the width is used up. */
export function dashboardPanels(rows: typeof dashboardRows): DashboardPanel[] {
  const panels: DashboardPanel[] = [];
  let y = 0;
  for (const { title, panels: texts } of rows) {
    const row = { type: "row", title, collapsed: false, panels: [] };
    panels.push({ id: panels.length + 1, ...row, gridPos: { x: 0, y, w: columns, h: 1 } });
    let x = 0;
    let height = 0;
    y++;
    for (const text of texts) {
      const h = heights[text.type];
      if (x + text.width > columns) {
        y += height;
        x = 0;
        height = 0;
      }
      panels.push(panelOf(text, panels.length + 1, { x, y, w: text.width, h }));
      x += text.width;
      height = Math.max(height, h);
    }
    y += height;
  }
  return panels;
}

function panelOf({ title, type, unit = "none", redFrom, queries }: PanelText, id: number, gridPos: Place) {
  const steps = [{ color: redFrom === undefined ? "text" : "green", value: null }];
  return {
    id,
    type,
    title,
    datasource,
    gridPos,
    fieldConfig: {
      defaults: {
        unit,
        thresholds: {
          mode: "absolute",
          steps: redFrom === undefined ? steps : [...steps, { color: "red", value: redFrom }],
        },
      },
      overrides: [],
    },
    ...(type === "stat" ? { options: { colorMode: "value", reduceOptions: { calcs: ["lastNotNull"] } } } : {}),
    ...(type === "table" ? { transformations: [{ id: "merge", options: {} }] } : {}),
    targets: queries.map(({ expr, legend }, index) => ({
      refId: String.fromCharCode(65 + index),
      datasource,
      expr,
      legendFormat: legend,
      ...(type === "table" ? { format: "table", instant: true } : {}),
    })),
  };
}

export function dashboardFile(): string {
  const dashboard = {
    __inputs: [{
      name: "DS_PROMETHEUS",
      label: "Prometheus",
      description: "the Prometheus that scrapes baton metrics",
      type: "datasource",
      pluginId: "prometheus",
      pluginName: "Prometheus",
    }],
    __requires: [
      { type: "grafana", id: "grafana", name: "Grafana", version: "9.0.0" },
      { type: "datasource", id: "prometheus", name: "Prometheus", version: "1.0.0" },
      ...["stat", "table", "timeseries"].map((id) => ({ type: "panel", id, name: id, version: "" })),
    ],
    id: null,
    uid: "baton",
    title: "baton",
    tags: ["baton"],
    schemaVersion: 36,
    version: 1,
    editable: true,
    refresh: "30s",
    time: { from: "now-24h", to: "now" },
    timezone: "browser",
    annotations: { list: [] },
    templating: {
      list: [{
        name: "name",
        label: "Name",
        type: "query",
        datasource,
        refresh: 2,
        sort: 1,
        multi: true,
        includeAll: true,
        allValue: ".*",
        current: { text: "All", value: "$__all" },
        query: { query: 'label_values({__name__=~"baton_.+"}, name)', refId: "names" },
      }],
    },
    panels: dashboardPanels(dashboardRows),
  };
  return `${JSON.stringify(dashboard, null, 2)}\n`;
}

/** Lists the views of the page. */
import type { UiTableName } from "../ui/ui_rows.ts";
import { pageTables } from "./page_state.ts";

export const viewNames = [
  "overview",
  "locks",
  "elections",
  "barriers",
  "pools",
  "ticks",
  "topics",
  "retry",
  "servers",
] as const;
export type ViewName = (typeof viewNames)[number];

export const viewTitles: Readonly<Record<ViewName, string>> = {
  overview: "Overview",
  locks: "Locks",
  elections: "Elections",
  barriers: "Barriers",
  pools: "Pools",
  ticks: "Schedules",
  topics: "Topics",
  retry: "Retry",
  servers: "Servers",
};

/** The tables whose rows a view counts. */
export const tablesOfView: Readonly<Record<ViewName, readonly UiTableName[]>> = {
  overview: [],
  locks: ["locks"],
  elections: ["elections"],
  barriers: ["barriers"],
  pools: ["pools"],
  ticks: ["ticks"],
  topics: ["topics"],
  retry: ["stores"],
  servers: ["servers", "processes"],
};

export const rowsOfView = (view: ViewName): number =>
  tablesOfView[view].reduce((sum, name) => sum + pageTables[name].keys.value.length, 0);

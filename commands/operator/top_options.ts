/** Options of `baton top`. */
import { keeperSettings } from "../../src/coordination/settings/command_settings.ts";
import { pubsubServiceSettings } from "../../src/pubsub/settings/pubsub_settings.ts";
import { retryProcessorSettings, retryStoreSettings } from "../../src/retry/settings/retry_settings.ts";
import { flagSetting, type Setting, type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { connectionSettings } from "../../src/coordination/settings/coordination_settings.ts";
import { choiceType, durationType, listType, textType } from "../../src/base/config/value_types.ts";
import type { CommandCall } from "../command.ts";
import { topSortKeys } from "./top_keys.ts";

/** Removes the flag of a setting: `baton top` reads another command's listen address from files and variables only. */
const configured = <T>({ flag: _flag, ...declaration }: Setting<T>): Setting<T> => declaration;

/** The settings that name what `baton top` and `baton ui` read. */
export const topSourcesSettings = {
  metrics: flagSetting("--metrics", listType("host:port|unix:PATH,…"), {
    once: true,
    help: "addresses of keepers, servers, proxies and retry processors that serve /metrics",
    unset: "the metrics_listen addresses of the configuration that respond",
  }),
  retryName: retryStoreSettings.retryName,
  retryStore: retryStoreSettings.retryStore,
  keeperMetricsListen: configured(keeperSettings.keeperMetricsListen),
  pubsubMetricsListen: configured(pubsubServiceSettings.pubsubMetricsListen),
  retryMetricsListen: configured(retryProcessorSettings.retryMetricsListen),
  ...connectionSettings,
} satisfies SettingTable;

const { metrics, ...otherSources } = topSourcesSettings;

export const topSettings = {
  interval: flagSetting("--interval", durationType({ minMs: 100 }), {
    help: "time between two readings; longer if a reading takes long",
    default: 2000,
  }),
  sort: flagSetting("--sort", choiceType(topSortKeys), {
    help: "order of locks, elections and so on",
    default: "kind",
  }),
  filter: flagSetting("--filter", textType("text"), { help: "only rows with this text in any column" }),
  once: toggleSetting("--once", {
    help: "print everything once; so it does where stdout is no terminal",
  }),
  metrics,
  json: toggleSetting("--json", { help: "print one JSON object" }),
  ...otherSources,
} satisfies SettingTable;

export type TopCall = CommandCall<typeof topSettings>;

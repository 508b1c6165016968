/** Options of `baton ui`. */
import { logSettings } from "../../src/coordination/settings/command_settings.ts";
import { connectionSettings } from "../../src/coordination/settings/coordination_settings.ts";
import { flagSetting, type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { listType, textType } from "../../src/base/config/value_types.ts";
import type { CommandCall } from "../command.ts";
import type { ProductView } from "../product.ts";
import { metricsAddressSettings } from "./process_rows.ts";
import { rowSourceSettings } from "./row_sources.ts";

export const ownUiSettings = {
  listen: flagSetting("--listen", textType("host:port"), {
    help:
      "address to listen on; :PORT is reachable from this machine only, any other needs --listen-cert and --token-file",
    default: "127.0.0.1:8610",
  }),
  tokenFile: flagSetting("--token-file", textType("file"), {
    help:
      "file with the token of the page, and with --allow-actions in its second line the token for actions; mode 600",
    unset: "new tokens at each start, in the links that are printed",
  }),
  hostName: flagSetting("--host-name", listType("name,…"), {
    once: true,
    help: "further names under which browsers reach the page",
    unset: "localhost, 127.0.0.1, [::1], and the host of --listen",
  }),
  allowActions: toggleSetting("--allow-actions", {
    help:
      "print a second link, whose page may break locks, make leaders resign, redrive and drop dead letters, drain " +
      "servers, move topics",
  }),
  showBodies: toggleSetting("--show-bodies", {
    help: "the page may show the bodies of dead letters, to decide on a redrive",
  }),
  listenCert: flagSetting("--listen-cert", textType("file"), {
    help: "PEM file with the certificate of the page, for TLS",
  }),
  listenKey: flagSetting("--listen-key", textType("file"), { help: "PEM file with the private key of --listen-cert" }),
  ...logSettings,
} satisfies SettingTable;

export function uiSettings(views: readonly ProductView[]): typeof knownSettings {
  const pageSettings: SettingTable = Object.assign({}, ...views.toReversed().map(({ pageSettings }) => pageSettings));
  return { ...ownUiSettings, ...pageSettings, ...rowSourceSettings(views), ...connectionSettings };
}

const knownSettings = { ...ownUiSettings, ...metricsAddressSettings, ...connectionSettings } satisfies SettingTable;

export type UiCall = CommandCall<typeof knownSettings>;

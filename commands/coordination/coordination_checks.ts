/** Checks coordination's settings for `baton config check`. */
import { parseListenAddressFlag } from "../../src/base/config/listen_address.ts";
import type { ConfigSources } from "../../src/base/config/resolve_settings.ts";
import type { SettingTable, SettingValues } from "../../src/base/config/setting.ts";
import { validateNodePath } from "../../src/protocols/zookeeper/node_path.ts";
import { readCoordinationServers } from "../../src/coordination/connect/coordination_servers.ts";
import { connectionSettings } from "../../src/coordination/settings/coordination_settings.ts";
import { coordinationSettings } from "../../src/coordination/settings/setting_tables.ts";
import { defineProductChecks } from "../product.ts";
import { parseKeeperLimits } from "../../src/coordination/keeper/lifecycle/limits_flag.ts";
import { configuredPoolPath } from "./pool/pool_options.ts";

type CheckedValues = SettingValues<typeof coordinationSettings>;

export const coordinationChecks = defineProductChecks({
  settings: coordinationSettings,
  values: {
    keeperListen: (addresses) => addresses.forEach(parseListenAddressFlag),
    keeperMetricsListen: parseListenAddressFlag,
    keeperLimits: parseKeeperLimits,
  },
  together: (values, sources) => [
    ...checkCoordination(values, sources),
    () => configuredPoolPath("component", withValidRoot(values), sources), // checks the templates
  ],
});

/** Replaces an invalid root by the default, so that the templates that contain it are not mistakes, too. */
function withValidRoot(values: CheckedValues): CheckedValues {
  try {
    validateNodePath(values.root);
    return values;
  } catch {
    return { ...values, root: connectionSettings.root.default ?? values.root };
  }
}

const tls = ["tls", "tlsCa", "tlsCert", "tlsKey", "tlsPassphrase", "tlsServerName"] as const;
/**
 * Settings that are checked together. All other settings have their defaults during the check, so that one mistake does
 * not hide another.
 */
const parts: readonly (readonly (keyof typeof connectionSettings)[])[] = [
  ["servers", "keeperDir"],
  ["root"],
  ["authCredentials"],
  ["authFile"],
  ["acl", "authCredentials", "authFile", "tlsCert", "tlsKey", "tlsPassphrase"],
  tls,
];

/** Checks certificates, credentials and lists of servers. */
function checkCoordination(values: CheckedValues, sources: ConfigSources): (() => unknown)[] {
  const { servers } = values;
  const isRemote = servers !== undefined && servers !== "embedded" && !servers.startsWith("unix:");
  const defaults = Object.fromEntries(
    Object.entries<SettingTable[string]>(connectionSettings).map(([name, setting]) => [name, setting.default]),
  );
  return parts.filter((part) => part !== tls || isRemote).map((part) => () => {
    const own = Object.fromEntries(part.map((name) => [name, values[name]]));
    const place = isRemote ? "localhost" : servers;
    return readCoordinationServers(
      { ...values, ...defaults, servers: place, keeperDir: values.keeperDir, ...own } as CheckedValues,
      sources,
    );
  });
}

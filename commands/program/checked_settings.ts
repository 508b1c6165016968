/**
 * Checks of values for `baton config check`. Other commands do them only when they use a value. Each value is checked alone, because
 * the command line may replace the others. Key files are not checked: they are on the machine that uses them.
 */
import { parseBindEndpoint, parseEndpoint } from "../../src/protocols/zeromq/endpoint.ts";
import { addOriginToErrors, type ConfigSources } from "../../src/base/config/resolve_settings.ts";
import type { SettingTable, SettingValues } from "../../src/base/config/setting.ts";
import { allSettings } from "./settings.ts";
import { connectionSettings } from "../../src/coordination/settings/coordination_settings.ts";
import { coordinationOf } from "../../src/coordination/connect/coordination_servers.ts";
import { checkName } from "../../src/pubsub/client/client_limits.ts";
import { Schedule } from "../../src/base/schedule/schedule.ts";
import { parseRate } from "../../src/retry/processor/rate_limit.ts";
import { parseCodes } from "../../src/retry/targets/outcome.ts";
import { parseDuration } from "../../src/base/support/duration.ts";
import { parseLimits } from "../coordination/keeper/limits_flag.ts";
import { parseListenFlag } from "../../src/base/config/listen_address.ts";
import { configuredPoolPath } from "../coordination/pool/pool_options.ts";
import { parseProxyEndpoint } from "../../src/pubsub/client/proxy_endpoint.ts";
import { deadLetterDestinationOf } from "../../src/retry/dead_letters/dead_letter_destination.ts";
import { configuredRedaction } from "../../src/retry/dead_letters/redaction.ts";
import { requestMemoryOf } from "../../src/retry/processor/retry_rules.ts";
import { topicStoreLocationOf } from "../pubsub/topic_store_location.ts";
import { storeLocationOf } from "../retry/retry_store_location.ts";

type AllValues = SettingValues<typeof allSettings>;

/** Checks by name of the setting. Each throws for an invalid value. */
const checks: { readonly [Name in keyof AllValues]?: (value: NonNullable<AllValues[Name]>) => void } = {
  pubsubServerId: (id) => checkName("server id", id),
  pubsubServerListen: parseBindEndpoint,
  pubsubServerAdvertise: (endpoint) => parseEndpoint(endpoint),
  pubsubProxyId: (id) => checkName("proxy id", id),
  pubsubProxyListen: (endpoints) => endpoints.forEach((endpoint) => parseBindEndpoint(endpoint)),
  pubsubProxyAdvertise: (endpoint) => parseEndpoint(endpoint),
  pubsubProxies: (addresses) => addresses.forEach(parseProxyEndpoint),
  pubsubClientId: (id) => checkName("client id", id),
  pubsubMetricsListen: parseListenFlag,
  keeperListen: (addresses) => addresses.forEach(parseListenFlag),
  keeperMetricsListen: parseListenFlag,
  keeperLimits: parseLimits,
  retryDelays: (delays) => delays.forEach(parseDuration),
  retryOn: (codes) => parseCodes(codes),
  retryNoRetryOn: (codes) => parseCodes(codes),
  retryRate: parseRate,
  retryCron: (written) => new Schedule(written),
  retryMetricsListen: parseListenFlag,
  retryFromTopic: (topic) => checkName("topic", topic),
  retryClientId: (id) => checkName("client id", id),
};

/** Calls `collect` with each check. A check throws USAGE or CONFIG with the place of the value. */
export function checkSettings(values: AllValues, sources: ConfigSources, collect: (check: () => void) => void): void {
  checkCoordination(values, sources, collect);
  collect(() => void configuredPoolPath("component", values, sources)); // checks the templates
  // Checks the name and a URL; the default folder of the store depends on the user.
  collect(() => storeLocationOf({ ...values, retryStore: values.retryStore ?? "." }, sources));
  collect(() => topicStoreLocationOf(values, sources));
  collect(() => deadLetterDestinationOf(values, sources));
  collect(() => configuredRedaction(values, sources));
  collect(() => requestMemoryOf(values, sources));
  for (const [name, setting] of Object.entries<SettingTable[string]>(allSettings)) {
    const [check, value] = [checks[name as keyof AllValues], values[name as keyof AllValues]];
    if (check !== undefined && value !== undefined) {
      collect(() => addOriginToErrors(name, setting, sources, () => (check as (value: unknown) => void)(value)));
    }
  }
}

const tls = ["tls", "tlsCa", "tlsCert", "tlsKey", "tlsPassphrase", "tlsServerName"] as const;
/** Settings that are checked together; all other settings have their default, so that no mistake hides another. */
const parts: readonly (readonly (keyof typeof connectionSettings)[])[] = [
  ["servers", "keeperDir"],
  ["root"],
  ["authCredentials"],
  ["authFile"],
  ["acl", "authCredentials", "authFile", "tlsCert", "tlsKey", "tlsPassphrase"],
  tls,
];

/** Checks certificates, credentials and lists of servers. */
function checkCoordination(values: AllValues, sources: ConfigSources, collect: (check: () => void) => void): void {
  const { servers } = values;
  const isRemote = servers !== undefined && servers !== "embedded" && !servers.startsWith("unix:");
  const defaults = Object.fromEntries(
    Object.entries<SettingTable[string]>(connectionSettings).map(([name, setting]) => [name, setting.default]),
  );
  for (const part of parts) {
    if (part === tls && !isRemote) continue;
    const own = Object.fromEntries(part.map((name) => [name, values[name]]));
    const place = isRemote ? "localhost" : servers;
    const alone = { ...values, ...defaults, servers: place, keeperDir: values.keeperDir, ...own };
    collect(() => void coordinationOf(alone, sources));
  }
}

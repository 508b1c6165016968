/**
 * What a value has to be that only the commands look into which go by it: each by itself, since another may be given on a
 * command line. Files of keys are let be: they are on the machine of the role that uses them.
 */
import { parseBindEndpoint, parseEndpoint } from "../src/clients/zeromq/endpoint.ts";
import { atOrigin, type ConfigSources } from "../src/config/resolve.ts";
import type { SettingTable, SettingValues } from "../src/config/setting.ts";
import { allSettings } from "../src/config/settings.ts";
import { BatonError } from "../src/errors.ts";
import { checkName } from "../src/recipes/pubsub/client/client_limits.ts";
import { cronTimes } from "../src/recipes/retry/cron_times.ts";
import { parseRate } from "../src/recipes/retry/rate_limit.ts";
import { parseCodes } from "../src/recipes/retry/verdict.ts";
import { parseListenAddress } from "../src/sockets/parse_address.ts";
import { parseDuration } from "../src/support/duration.ts";
import { checkPoolTemplates } from "./pool/configured_path.ts";
import { proxyEndpoint } from "./pubsub/find_proxies.ts";
import { letterPlaceOf, placeOf } from "./retry/retry_rules.ts";

type Values = SettingValues<typeof allSettings>;

/** By the setting's name. Each throws for a value that no command takes. */
const checks: { readonly [Name in keyof Values]?: (value: NonNullable<Values[Name]>) => void } = {
  pubsubServerId: (id) => checkName("server id", id),
  pubsubServerListen: parseBindEndpoint,
  pubsubServerAdvertise: (endpoint) => parseEndpoint(endpoint),
  pubsubProxyId: (id) => checkName("proxy id", id),
  pubsubProxyListen: (endpoints) => endpoints.forEach((endpoint) => parseBindEndpoint(endpoint)),
  pubsubProxyAdvertise: (endpoint) => parseEndpoint(endpoint),
  pubsubProxies: (addresses) => addresses.forEach(proxyEndpoint),
  pubsubClientId: (id) => checkName("client id", id),
  pubsubMetricsListen: checkListen,
  retryDelays: (delays) => delays.forEach(parseDuration),
  retryOn: parseCodes,
  retryNoRetryOn: parseCodes,
  retryRate: parseRate,
  retryCron: (written) => cronTimes(written),
  retryMetricsListen: checkListen,
  retryFromTopic: (topic) => checkName("topic", topic),
  retryClientId: (id) => checkName("client id", id),
};

/** Throws USAGE or CONFIG, with the place where the first wrong value stands. */
export function checkSettings(values: Values, sources: ConfigSources): void {
  checkPoolTemplates(values, sources);
  placeOf({ ...values, retryStore: "." }, sources); // the name; where the store would be is this user's own affair
  letterPlaceOf(values, sources);
  for (const [name, setting] of Object.entries<SettingTable[string]>(allSettings)) {
    const [check, value] = [checks[name as keyof Values], values[name as keyof Values]];
    if (check !== undefined && value !== undefined) {
      atOrigin(name, setting, sources, () => (check as (value: unknown) => void)(value));
    }
  }
}

function checkListen(listen: string): void {
  if (parseListenAddress(listen) !== null) return;
  throw new BatonError("USAGE", `Cannot listen at "${listen}": write host:port, :port or unix:/absolute/path`);
}

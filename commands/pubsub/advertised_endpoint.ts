/** Checks where a proxy or server listens and which address it announces to others, before anything is started. */
import {
  formatZeroMqEndpoint,
  parseBindEndpoint,
  parseConnectEndpoint,
} from "../../src/protocols/zeromq/zeromq_endpoint.ts";
import {
  parseListenAddressFlag,
  planStatusPageSocket,
  refuseUnprotectedSockets,
} from "../../src/base/config/listen_address.ts";
import { addOriginToErrors, type ConfigSources } from "../../src/base/config/resolve_settings.ts";
import type { SettingValues } from "../../src/base/config/setting.ts";
import { pubsubSettings } from "../../src/pubsub/settings/pubsub_settings.ts";
import { BatonError } from "../../src/base/errors.ts";
import { describeWhoReachesSockets } from "../../src/base/sockets/socket_reach.ts";

/** Matches all spellings of 0.0.0.0 and ::. */
const everyAddress = /^[0:.]+$/;

type AddressSettingName =
  | "pubsubServerListen"
  | "pubsubServerAdvertise"
  | "pubsubProxyListen"
  | "pubsubProxyAdvertise"
  | "pubsubMetricsListen";

/**
 * Checks that a server or proxy, and its status page, can listen at the addresses of its settings, and that others can
 * connect to the announced one. Throws USAGE or CONFIG, depending on where the value comes from.
 */
export function checkServiceAddresses(
  role: "pubsubServer" | "pubsubProxy",
  { values, sources }: {
    readonly values: Partial<SettingValues<Pick<typeof pubsubSettings, AddressSettingName>>>;
    readonly sources: ConfigSources;
  },
): void {
  const check = <T>(name: AddressSettingName, work: () => T) =>
    addOriginToErrors(name, pubsubSettings[name], sources, work);
  const listen = `${role}Listen` as const;
  const advertise = `${role}Advertise` as const;
  const [bound] = check(listen, () => [values[listen] ?? []].flat().map(parseBindEndpoint));
  const advertised = values[advertise];
  const told = advertised === undefined ? bound : check(advertise, () => parseConnectEndpoint(advertised));
  const blamed = advertised === undefined ? listen : advertise;
  if (told !== undefined) check(blamed, () => checkDialled(told, advertised));
  const { pubsubMetricsListen: page } = values;
  if (page !== undefined) check("pubsubMetricsListen", () => parseListenAddressFlag(page));
}

/**
 * Refuses endpoints that other machines could reach without a key, unless the user gave `--insecure`. Throws CONFIG.
 */
export function refuseOpenPubsubSockets(
  endpoints: readonly string[],
  { pubsubMetricsListen, pubsubInsecure }: {
    readonly pubsubMetricsListen?: string | undefined;
    readonly pubsubInsecure: boolean;
  },
  isProtected: boolean,
): void {
  const sockets = endpoints.map((endpoint) => ({
    address: parseBindEndpoint(endpoint),
    protection: "--key",
    isProtected,
  }));
  refuseUnprotectedSockets([...sockets, ...planStatusPageSocket(pubsubMetricsListen)], pubsubInsecure);
}

/**
 * Describes where a server or proxy listens and who can connect there. The service prints this when it starts to serve.
 * `announced` is the endpoint that is announced to others. `needs` says what a client must have, for example a key.
 * `isProtected` is true if only processes with a key can connect.
 */
export function describeListenEndpoints(
  bound: readonly string[],
  { announced, needs, isProtected }: {
    readonly announced: string;
    readonly needs: string | null;
    readonly isProtected: boolean;
  },
): string {
  const told = bound.includes(announced) ? "" : `, announced as ${announced}`;
  const where = describeWhoReachesSockets(bound.map(parseBindEndpoint), {
    isProtected,
    format: formatZeroMqEndpoint,
    separator: `${told}, `,
  });
  return needs === null ? where : `${where}, with ${needs}`;
}

function checkDialled(told: ReturnType<typeof parseConnectEndpoint>, advertise: string | undefined): void {
  if (told.kind !== "tcp" || !everyAddress.test(told.host)) return;
  const endpoint = formatZeroMqEndpoint(told);
  const example = "as in --advertise tcp://HOST:PORT";
  throw new BatonError(
    "USAGE",
    advertise === undefined
      ? `${endpoint} is every address of this machine, which other machines cannot use: ` +
        `set the address that they can reach, ${example}`
      : `${endpoint} is every address of a machine, which other machines cannot dial: use ` +
        `this machine's name or one of its addresses, ${example}`,
  );
}

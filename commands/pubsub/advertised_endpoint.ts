/** Checks where a proxy or server listens and which address it announces to others, before anything is started. */
import {
  formatZeroMqEndpoint,
  parseBindEndpoint,
  parseConnectEndpoint,
} from "../../src/protocols/zeromq/zeromq_endpoint.ts";
import { planStatusPageSocket, refuseUnprotectedSockets } from "../../src/base/config/listen_address.ts";
import { addOriginToErrors, type ConfigSources } from "../../src/base/config/resolve_settings.ts";
import type { Setting } from "../../src/base/config/setting.ts";
import { BatonError } from "../../src/base/errors.ts";
import { describeWhoReachesSockets } from "../../src/base/sockets/socket_reach.ts";

/** Matches all spellings of 0.0.0.0 and ::. */
const everyAddress = /^[0:.]+$/;

/** One or several endpoints, and the setting that contains them. */
export interface EndpointSettingValue<T> {
  readonly name: string;
  readonly setting: Setting<unknown>;
  readonly value: T;
}

/**
 * Checks that endpoints can be listened on and connected to. Throws USAGE or CONFIG, depending on where the value comes
 * from.
 */
export function checkAdvertisedEndpoint(
  listen: EndpointSettingValue<readonly string[]>,
  advertise: EndpointSettingValue<string | undefined>,
  sources: ConfigSources,
): void {
  const listened = addOriginToErrors(listen.name, listen.setting, sources, () => listen.value.map(parseBindEndpoint));
  const { name, setting, value } = advertise;
  const told = value === undefined
    ? listened[0]
    : addOriginToErrors(name, setting, sources, () => parseConnectEndpoint(value));
  if (told === undefined) return;
  const blamed = value === undefined ? listen : advertise;
  addOriginToErrors(blamed.name, blamed.setting, sources, () => checkDialled(told, value));
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

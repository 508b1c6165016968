/** Checks the endpoint that a proxy or server advertises, before anything is started. */
import { formatEndpoint, parseBindEndpoint, parseEndpoint } from "../../src/protocols/zeromq/endpoint.ts";
import { addOriginToErrors, type ConfigSources } from "../../src/base/config/resolve_settings.ts";
import type { Setting } from "../../src/base/config/setting.ts";
import { BatonError } from "../../src/base/errors.ts";
import { describeReach } from "../../src/base/sockets/socket_reach.ts";

/** All spellings of 0.0.0.0 and ::. */
const everyAddress = /^[0:.]+$/;

/** An endpoint and the setting that it comes from. */
export interface EndpointSettingValue<T> {
  readonly name: string;
  readonly setting: Setting<unknown>;
  readonly value: T;
}

/** Throws USAGE or CONFIG, depending on where the value comes from, if the endpoint cannot be bound or dialled. */
export function checkAdvertisedEndpoint(
  listen: EndpointSettingValue<readonly string[]>,
  advertise: EndpointSettingValue<string | undefined>,
  sources: ConfigSources,
): void {
  const listened = addOriginToErrors(listen.name, listen.setting, sources, () => listen.value.map(parseBindEndpoint));
  const { name, setting, value } = advertise;
  const told = value === undefined
    ? listened[0]
    : addOriginToErrors(name, setting, sources, () => parseEndpoint(value));
  if (told === undefined) return;
  const blamed = value === undefined ? listen : advertise;
  addOriginToErrors(blamed.name, blamed.setting, sources, () => checkDialled(told, value));
}

/**
 * Where a role listens, and who can connect there, for the line that it prints when it serves. `announced`: the
 * endpoint that others are told; `needs`: what a client must have besides.
 */
export function describeListenEndpoints(bound: readonly string[], announced: string, needs: string | null): string {
  const told = bound.includes(announced) ? "" : `, announced as ${announced}`;
  const where = describeReach(bound.map(parseBindEndpoint), formatEndpoint, `${told}, `);
  return needs === null ? where : `${where}, with ${needs}`;
}

function checkDialled(told: ReturnType<typeof parseEndpoint>, advertise: string | undefined): void {
  if (told.kind !== "tcp" || !everyAddress.test(told.host)) return;
  const endpoint = formatEndpoint(told);
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

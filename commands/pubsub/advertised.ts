/** The endpoint that a role tells others, checked before anything is started. */
import { formatEndpoint, parseBindEndpoint, parseEndpoint } from "../../src/zeromq/endpoint.ts";
import { atOrigin, type ConfigSources } from "../../src/config/resolve_settings.ts";
import type { Setting } from "../../src/config/setting.ts";
import { BatonError } from "../../src/errors.ts";

/** 0.0.0.0 and ::, in every way to write them. */
const everyAddress = /^[0:.]+$/;

/** A setting with an endpoint, by its name. */
export interface EndpointSetting<T> {
  readonly name: string;
  readonly setting: Setting<unknown>;
  readonly value: T;
}

/** Throws USAGE or CONFIG, by where it stands, for what cannot be listened at and for what no one could dial. */
export function checkAdvertised(
  listen: EndpointSetting<readonly string[]>,
  advertise: EndpointSetting<string | undefined>,
  sources: ConfigSources,
): void {
  const listened = atOrigin(listen.name, listen.setting, sources, () => listen.value.map(parseBindEndpoint));
  const { name, setting, value } = advertise;
  const told = value === undefined ? listened[0] : atOrigin(name, setting, sources, () => parseEndpoint(value));
  if (told === undefined) return;
  const blamed = value === undefined ? listen : advertise;
  atOrigin(blamed.name, blamed.setting, sources, () => checkDialled(told, value));
}

function checkDialled(told: ReturnType<typeof parseEndpoint>, advertise: string | undefined): void {
  if (told.kind !== "tcp" || !everyAddress.test(told.host)) return;
  const endpoint = formatEndpoint(told);
  const example = "as in --advertise tcp://HOST:PORT";
  throw new BatonError(
    "USAGE",
    advertise === undefined
      ? `${endpoint} is every address of this machine, and none that others could be told: ` +
        `--advertise says where they reach it, ${example}`
      : `${endpoint} is every address of a machine, and none that others could dial: wanted is ` +
        `this machine's name or one of its addresses, ${example}`,
  );
}

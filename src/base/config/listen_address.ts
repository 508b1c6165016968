/** Listen addresses in settings. */
import { addOriginToErrors, type ConfigSources } from "./resolve_settings.ts";
import type { Setting } from "./setting.ts";
import { BatonError } from "../errors.ts";
import type { Address } from "../sockets/connection.ts";
import { parseListenAddress } from "../sockets/parse_address.ts";

/** Parses the listen address of a flag. Throws USAGE. */
export function parseListenFlag(written: string): Address {
  const address = parseListenAddress(written);
  if (address !== null) return address;
  throw new BatonError(
    "USAGE",
    `Cannot listen on "${written}": write host:port, [address]:port, :port or unix:/absolute/path`,
  );
}

/** Checks a listen address if the setting has one. Throws USAGE or CONFIG; the message says where the value was set. */
export function checkListenAddress(
  name: string,
  setting: Setting<string | undefined>,
  written: string | undefined,
  sources: ConfigSources,
): void {
  if (written !== undefined) addOriginToErrors(name, setting, sources, () => parseListenFlag(written));
}

/** An address to listen at, as a setting has it: what is wrong with it is said with the place where it stands. */
import { atOrigin, type ConfigSources } from "../src/config/resolve_settings.ts";
import type { Setting } from "../src/config/setting.ts";
import { BatonError } from "../src/errors.ts";
import type { Address } from "../src/sockets/connection.ts";
import { parseListenAddress } from "../src/sockets/parse_address.ts";

/** Throws USAGE. */
export function listenAddress(written: string): Address {
  const address = parseListenAddress(written);
  if (address !== null) return address;
  throw new BatonError("USAGE", `Cannot listen at "${written}": write host:port, :port or unix:/absolute/path`);
}

/** Throws USAGE or CONFIG for one that is given and cannot be. */
export function checkListenAddress(
  name: string,
  setting: Setting<string | undefined>,
  written: string | undefined,
  sources: ConfigSources,
): void {
  if (written !== undefined) atOrigin(name, setting, sources, () => listenAddress(written));
}

/** Parses listen addresses in settings, and decides which addresses a service may open. */
import { addOriginToErrors, type ConfigSources } from "./resolve_settings.ts";
import type { Setting } from "./setting.ts";
import { BatonError } from "../errors.ts";
import { type Address, formatAddress } from "../sockets/connection.ts";
import { parseListenAddress } from "../sockets/parse_address.ts";
import { isReachableFromNetwork } from "../sockets/socket_reach.ts";

/** Parses the listen address of a flag. Throws USAGE. */
export function parseListenAddressFlag(written: string): Address {
  const address = parseListenAddress(written);
  if (address !== null) return address;
  throw new BatonError(
    "USAGE",
    `Cannot listen on "${written}": write host:port, [address]:port, :port or unix:/absolute/path`,
  );
}

/**
 * Checks the listen address in a setting; does nothing if the setting is undefined. Throws USAGE or CONFIG. The message
 * says where the value was set.
 */
export function checkListenAddress(
  name: string,
  setting: Setting<string | undefined>,
  written: string | undefined,
  sources: ConfigSources,
): void {
  if (written !== undefined) addOriginToErrors(name, setting, sources, () => parseListenAddressFlag(written));
}

export interface PlannedSocket {
  readonly address: Address;
  /** The options that would protect the socket, such as "--tls-cert and --tls-key"; null if no option can. */
  readonly protection: string | null;
  readonly isProtected: boolean;
}

/**
 * Throws CONFIG if other machines can reach a socket that neither TLS nor keys protect, unless `isInsecure` allows it.
 */
export function refuseUnprotectedSockets(sockets: readonly PlannedSocket[], isInsecure: boolean): void {
  if (isInsecure) return;
  const open = sockets.find(({ address, isProtected }) => isReachableFromNetwork(address) && !isProtected);
  if (open === undefined) return;
  const protect = open.protection === null ? "" : `protect it with ${open.protection}, `;
  throw new BatonError(
    "CONFIG",
    `Cannot listen on ${formatAddress(open.address)}: other machines can connect there, and nothing keeps them out. ` +
      `Either ${protect}listen on 127.0.0.1 or a unix socket, or allow it with --insecure`,
  );
}

/** Returns the socket of a status page, which neither TLS nor keys protect. Throws USAGE for an invalid address. */
export function planStatusPageSocket(written: string | undefined): PlannedSocket[] {
  return written === undefined
    ? []
    : [{ address: parseListenAddressFlag(written), protection: null, isProtected: false }];
}

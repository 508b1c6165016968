/**
 * Tells which users or machines can connect to a socket, from its address and the modes of its path. Keys and tokens
 * may restrict access further.
 */
import { statSync } from "node:fs";
import { dirname } from "node:path";
import process from "node:process";
import { type Address, formatAddress } from "./connection.ts";

const everyUser = "all users of this machine";

/**
 * Describes who can reach an address, as in "for other machines, too". A host name other than localhost counts as a
 * network address. `isProtected` is true if the socket has TLS or keys.
 */
export function describeWhoReachesSocket(address: Address, isProtected: boolean): string {
  if (address.kind === "unix") return reachOfPath(address.path);
  if (!isReachableFromNetwork(address)) return everyUser;
  return isProtected ? "other machines, too" : "other machines, too, WITHOUT TLS OR KEYS";
}

/** Returns true if other machines may reach an address. */
export function isReachableFromNetwork(address: Address): boolean {
  return address.kind === "tcp" && !isLoopbackHost(address.host);
}

/** Returns true if a host name or address means this machine, for this machine only. */
export function isLoopbackHost(host: string): boolean {
  return host === "localhost" || host === "::1" || /^(::ffff:)?127(\.\d+){3}$/.test(host);
}

/** Returns a list of addresses for people, with who can reach each: "A, B for …" or "A for …, B for …". */
export function describeWhoReachesSockets(
  addresses: readonly Address[],
  { isProtected, format = formatAddress, separator = " " }: {
    readonly isProtected: boolean;
    readonly format?: (address: Address) => string;
    readonly separator?: string;
  },
): string {
  const reachOf = (address: Address) => describeWhoReachesSocket(address, isProtected);
  const reaches = new Set(addresses.map(reachOf));
  if (reaches.size === 1) return `${addresses.map(format).join(", ")}${separator}for ${[...reaches].join()}`;
  return addresses.map((address) => `${format(address)}${separator}for ${reachOf(address)}`).join(", ");
}

/**
 * Describes who can reach a Unix socket, from the rights that a client needs: to write to the socket, and to search all
 * folders above it.
 */
function reachOfPath(path: string): string {
  const user = process.geteuid?.() === 0 ? "root" : "this user";
  try {
    const { mode, gid } = statSync(path);
    let forAll = (mode & 0o002) !== 0;
    let forGroup = (mode & 0o020) !== 0;
    for (let folder = dirname(path), last = path; folder !== last; [last, folder] = [folder, dirname(folder)]) {
      const above = statSync(folder);
      forGroup &&= (above.mode & 0o001) !== 0 || ((above.mode & 0o010) !== 0 && above.gid === gid);
      forAll &&= (above.mode & 0o001) !== 0;
    }
    if (forAll) return everyUser;
    if (forGroup) return `${user} and its group`;
  } catch {
    // Other users cannot look at the path either.
  }
  return `${user} only`;
}

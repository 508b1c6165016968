/** Tells whether an IP address belongs to a network. */
import process from "node:process";

/**
 * Returns true if an address is in a network such as 10.0.0.0/8 or fd00::/8. Returns false if the address or the
 * network is invalid.
 */
export function isInNetwork(address: string, network: string): boolean {
  const [, base, bits] = /^([^/]+)\/(\d{1,3})$/.exec(network) ?? [];
  if (base === undefined) return false;
  const { BlockList, isIP } = process.getBuiltinModule("node:net"); // takes two milliseconds to load
  const family = isIP(base);
  if (family === 0 || isIP(address) !== family || Number(bits) > (family === 4 ? 32 : 128)) return false;
  const networks = new BlockList();
  const type = family === 4 ? "ipv4" : "ipv6";
  networks.addSubnet(base, Number(bits), type);
  return networks.check(address, type);
}

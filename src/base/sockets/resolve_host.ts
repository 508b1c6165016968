/** Resolves host names with the system's resolver. */

/** Returns all addresses of `host`, resolved at each call. Rejects with the resolver's error (`code` ENOTFOUND …). */
export type ResolveHost = (host: string) => Promise<string[]>;

const ipv4Literal = /^\d{1,3}(?:\.\d{1,3}){3}$/;

/** Resolves a host name. Returns an IP address unchanged, without loading the resolver. */
export const resolveHost: ResolveHost = async (host) => {
  if (isIpLiteral(host)) return [host];
  const { lookup } = await import("node:dns/promises");
  return (await lookup(host, { all: true })).map((found) => found.address);
};

export function isIpLiteral(host: string): boolean {
  return host.includes(":") || ipv4Literal.test(host);
}

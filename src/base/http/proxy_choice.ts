/** Chooses the proxy for a request according to HTTP_PROXY, HTTPS_PROXY and NO_PROXY. Pure. */
import { BatonError } from "../errors.ts";
import { isLoopbackHost } from "../sockets/socket_reach.ts";
import process from "node:process";

export type ProxyEnvironment = Readonly<Record<string, string | undefined>>;

export interface ProxyChoice {
  readonly host: string;
  readonly port: number;
  /** The value of Proxy-Authorization, or null to send none. */
  readonly authorization: string | null;
  /** The proxy's URL without the password, and the variable that names the proxy, for messages. */
  readonly name: string;
}

/**
 * Returns the proxy for requests to `origin`, or null to send them directly. Requests to this machine use no proxy.
 * Throws CONFIG if a variable is not the URL of an HTTP proxy.
 */
export function chooseHttpProxy(origin: string, env: ProxyEnvironment): ProxyChoice | null {
  const { protocol, hostname, port } = new URL(origin);
  const host = plainHost(hostname);
  const name = protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY";
  const variable = [name.toLowerCase(), name].find((one) => env[one]?.trim() && !isForged(one, env));
  if (variable === undefined || isLoopbackHost(host) || ownHosts.test(host)) return null;
  const noProxy = env["no_proxy"] || env["NO_PROXY"] || "";
  if (isListed(noProxy, host, port || (protocol === "https:" ? "443" : "80"))) return null;
  return parseProxy(env[variable]?.trim() ?? "", variable);
}

/**
 * True if HTTP_PROXY may come from a client: a client of a CGI program can set this variable with the request header
 * `Proxy`.
 */
function isForged(name: string, env: ProxyEnvironment): boolean {
  return name === "HTTP_PROXY" && env["REQUEST_METHOD"] !== undefined;
}

function parseProxy(written: string, variable: string): ProxyChoice {
  const url = URL.parse(written.includes("://") ? written : `http://${written}`);
  if (url?.protocol !== "http:" || url.hostname === "" || url.port === "0") {
    // The message omits the value, which may contain a password.
    throw new BatonError("CONFIG", `${variable} is not the URL of an HTTP proxy; expected http://HOST:PORT`);
  }
  const { username, password, hostname, port } = url;
  const login = `${unescaped(username)}:${unescaped(password)}`;
  return {
    host: hostname.replace(/^\[|\]$/g, ""),
    port: Number(port || 80),
    authorization: login === ":" ? null : `Basic ${Buffer.from(login).toString("base64")}`,
    name: `the proxy ${url.origin} (${variable})`,
  };
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Matches addresses and names of this machine that `isLoopbackHost` does not match. */
const ownHosts =
  /^(?:::|0\.0\.0\.0|::ffff:(?:7f.*|0:0)|.*\.localhost|localhost\.localdomain|ip6-(?:localhost|loopback))$/;

function isListed(list: string, host: string, port: string): boolean {
  return list.split(/[,\s]+/).some((written) => {
    const [, entry = written, onlyPort = port] = /^(\[[^\]]*\]|[^:]*):(\d+)$/.exec(written) ?? [];
    if (entry === "" || onlyPort !== port) return false;
    if (entry === "*") return true;
    const name = plainHost(entry.replace(/^\*?\./, ""));
    return name !== "" && (host === name || host.endsWith(`.${name}`) || isInNetwork(host, entry));
  });
}

/**
 * Normalizes a host as URLs do (lower case, ASCII, shortest address), and removes brackets and a final dot.
 */
function plainHost(written: string): string {
  const bare = written.replace(/^\[|\]$/g, "");
  const host = bare.includes(":") ? `[${bare}]` : bare;
  return (URL.parse(`http://${host}/`)?.hostname ?? bare).replace(/^\[|\]$|\.$/g, "");
}

/**
 * Tells whether an IP address belongs to a network. Returns true if an address is in a network such as 10.0.0.0/8 or
 * fd00::/8. Returns false if the address or the network is invalid.
 */
function isInNetwork(address: string, network: string): boolean {
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

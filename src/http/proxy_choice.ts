/** The choice of the proxy that a request is sent through, as HTTP_PROXY, HTTPS_PROXY and NO_PROXY say. Pure. */
import { BatonError } from "../errors.ts";
import { isLoopback } from "../sockets/socket_reach.ts";

export type ProxyEnvironment = Readonly<Record<string, string | undefined>>;

export interface ProxyChoice {
  readonly host: string;
  readonly port: number;
  /** The value of Proxy-Authorization; null: none is sent. */
  readonly authorization: string | null;
  /** The proxy without its password, and the variable that names it, in messages. */
  readonly name: string;
}

/** Null: the request is sent directly. Throws CONFIG for a variable that names no HTTP proxy. Requests to this machine use none. */
export function proxyFor(origin: string, env: ProxyEnvironment): ProxyChoice | null {
  const { protocol, hostname, port } = new URL(origin);
  const host = hostname.replace(/^\[|\]$/g, "").toLowerCase();
  const name = protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY";
  const variable = [name.toLowerCase(), name].find((one) => env[one]?.trim() && !isForged(one, env));
  if (variable === undefined || isThisMachine(host)) return null;
  const noProxy = env["no_proxy"] || env["NO_PROXY"] || "";
  if (isListed(noProxy, host, port || (protocol === "https:" ? "443" : "80"))) return null;
  return parseProxy(env[variable]?.trim() ?? "", variable);
}

/** A CGI server gives its program the header `Proxy` of a client as HTTP_PROXY. */
function isForged(name: string, env: ProxyEnvironment): boolean {
  return name === "HTTP_PROXY" && env["REQUEST_METHOD"] !== undefined;
}

function parseProxy(written: string, variable: string): ProxyChoice {
  const url = URL.parse(written.includes("://") ? written : `http://${written}`);
  if (url?.protocol !== "http:" || url.hostname === "") {
    // The value may have a password.
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

function isThisMachine(host: string): boolean {
  return isLoopback(host) || host.endsWith(".localhost") || host.startsWith("::ffff:7f");
}

function isListed(list: string, host: string, port: string): boolean {
  return list.split(/[,\s]+/).some((written) => {
    const [, entry = written, onlyPort = port] = /^(\[[^\]]*\]|[^:]*):(\d+)$/.exec(written) ?? [];
    if (entry === "" || onlyPort !== port) return false;
    if (entry === "*") return true;
    const name = entry.replace(/^\[|\]$/g, "").replace(/^\*?\./, "").toLowerCase();
    return host === name || host.endsWith(`.${name}`) || isInNetwork(host, name);
  });
}

/** Whether an IPv4 address is in a network such as 10.0.0.0/8. */
function isInNetwork(host: string, network: string): boolean {
  const [, base, bits = ""] = /^([\d.]+)\/(\d{1,2})$/.exec(network) ?? [];
  const [address, first] = [ipv4Number(host), ipv4Number(base ?? "")];
  const size = 2 ** (32 - Number(bits));
  return address !== null && first !== null && Number(bits) <= 32 &&
    Math.floor(address / size) === Math.floor(first / size);
}

function ipv4Number(text: string): number | null {
  if (!/^\d{1,3}(\.\d{1,3}){3}$/.test(text)) return null;
  return text.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
}
